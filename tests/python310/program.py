"""Runs on CPython 3.10: imports all of client, command line and worker, and runs commands on recorded answers.

`INPUT` is JSON: for each command its arguments and the exchanges with the API. Prints JSON: the Python version, the
modules that were imported, and the exit code and output of each command.
"""

import importlib
import json
import pkgutil
import sys
import types
from datetime import datetime, timezone
from enum import IntEnum, IntFlag

sys.path[:0] = ["/checkout/src", "/site"]
sys.dont_write_bytecode = True
NOT_HERE = {"jax", "sagemaker", "torch"}


class _Ssl(types.ModuleType):
    """A stand-in for the module `ssl`, which this build of Python lacks; it opens no connection."""

    OPENSSL_VERSION = "OpenSSL 3.0.0"
    OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
    OPENSSL_VERSION_NUMBER = 0x30000000
    VerifyMode = IntEnum("VerifyMode", ["CERT_NONE", "CERT_REQUIRED"])
    TLSVersion = IntEnum("TLSVersion", ["MINIMUM_SUPPORTED", "MAXIMUM_SUPPORTED", "TLSv1_2", "TLSv1_3"])
    VerifyFlags = IntFlag("VerifyFlags", ["VERIFY_DEFAULT"])
    Options = IntFlag("Options", ["OP_ALL"])

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return 0 if name.isupper() else type(name, (OSError,), {})


sys.modules["ssl"] = _Ssl("ssl")
sys.modules["fcntl"] = types.ModuleType("fcntl")  # nor this one


def import_all():
    imported = []
    for package in ("client", "cli", "worker"):
        root = importlib.import_module(f"trainmaster.{package}")
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                if error.name not in NOT_HERE:
                    raise
            else:
                imported.append(found.name)
    return imported


def run(arguments, exchanges):
    import boto3
    import httpx
    from typer.testing import CliRunner

    from trainmaster.cli.common.context import CliContext
    from trainmaster.cli.program import build
    from trainmaster.client.api.client import ApiClient

    left = list(exchanges)

    def answer(request):
        method, target, status, body = left.pop(0)
        assert (request.method, request.url.raw_path.decode()) == (method, target)
        return httpx.Response(status, content=body.encode(), headers={"Content-Type": "application/json"})

    session = boto3.session.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
    with ApiClient("https://api/prod", session=session, transport=httpx.MockTransport(answer), environ={}) as api:
        cli = CliContext(
            connect=lambda target, environ: api,
            environ={},
            now=lambda: datetime(2026, 11, 20, 13, 0, tzinfo=timezone.utc),
            clock=lambda: 0.0,
            sleep=lambda seconds: None,
            exec_program=lambda arguments: None,
            is_installed=lambda module: True,
        )
        result = CliRunner().invoke(build(), arguments, obj=cli, prog_name="trainmaster")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return [result.exit_code, result.stdout, result.stderr]


given = json.loads(INPUT)  # noqa: F821 - run.cjs sets it
outputs = [run(*each) for each in given]
sys.stdout.write(json.dumps({"version": sys.version_info[:2], "modules": import_all(), "outputs": outputs}) + "\n")
