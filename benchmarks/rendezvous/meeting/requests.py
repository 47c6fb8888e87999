"""DynamoDB's requests over HTTP with a fraction of botocore's work, so that one machine can run hundreds of nodes."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
    "X-Amz-Date": "20260101T000000Z",
}


class Requests:
    """The four calls of the rendezvous, with boto3's names, arguments and errors.

    Args:
        port: of the engine on this machine.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._local = threading.local()

    def get_item(self, **request: Any) -> Any:
        """Call GetItem."""
        return self._call("GetItem", request)

    def update_item(self, **request: Any) -> Any:
        """Call UpdateItem."""
        return self._call("UpdateItem", request)

    def query(self, **request: Any) -> Any:
        """Call Query."""
        return self._call("Query", request)

    def delete_item(self, **request: Any) -> Any:
        """Call DeleteItem."""
        return self._call("DeleteItem", request)

    def _call(self, operation: str, request: dict[str, Any]) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            headers = {**_HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
            connection.request("POST", "/", json.dumps(request, default=_encode_bytes), headers)
            response = connection.getresponse()
            answer = _decode_bytes(json.loads(response.read()))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise EndpointConnectionError(endpoint_url=f"127.0.0.1:{self._port}") from error
        if response.status != http.client.OK:
            code = str(answer.get("__type", "")).rpartition("#")[2]
            raise ClientError({"Error": {"Code": code, "Message": str(answer)}, **answer}, operation)
        return answer


def _encode_bytes(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def _decode_bytes(value: Any) -> Any:
    """Decode the values of type B, at any depth."""
    if isinstance(value, list):
        return [_decode_bytes(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64decode(each) if name == "B" and isinstance(each, str) else _decode_bytes(each)
        for name, each in value.items()
    }
