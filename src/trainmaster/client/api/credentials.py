"""Turns errors about AWS credentials into one that names the command with which to log in again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainmaster.client.api.errors import Forbidden

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.api.core_session import CoreSession

EXPIRED: Final = frozenset(
    {
        *("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRetrievalError", "SSOTokenLoadError"),
        *("UnauthorizedSSOTokenError", "CredentialRetrievalError", "TokenRefreshRequired", "LoginRefreshRequired"),
        *("LoginTokenLoadError", "RefreshWithMFAUnsupportedError", "InfiniteLoopConfigError"),
    }
)
"""Names of errors of botocore and codes of AWS that mean: the credentials cannot be used any more."""
INVALID: Final = frozenset(
    {
        *("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "InvalidClientTokenId"),
        *("UnrecognizedClientException", "SignatureDoesNotMatch", "AuthFailure", "InvalidAccessKeyId"),
    }
)
"""Those that mean: there are no credentials, or not those of an AWS identity."""


def credentials_error(error: BaseException, session: boto3.session.Session | CoreSession | None) -> Forbidden | None:
    """Return the error of expired or missing credentials; None if the error is about something else."""
    code = error_code(error)
    if code in EXPIRED:
        return Forbidden(f"Your AWS credentials have expired ({_text(error)}).", type=code, hint=login_hint(session))
    if code in INVALID:
        return Forbidden(f"{_text(error)}.", type=code, hint=login_hint(session))
    return None


def error_code(error: BaseException) -> str:
    """Return the code that AWS answered, or the name of an error of botocore."""
    answer: dict[str, Any] = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", "") if isinstance(answer, dict) else "") or type(error).__name__


def login_hint(session: boto3.session.Session | CoreSession | None) -> str:
    """Return how the session's profile gets new credentials.

    A profile of IAM Identity Center has `sso_session` or `sso_start_url`, one of `aws login` has `login_session`
    (AWS CLI user guide, "Configuration and credential file settings").
    """
    profile, settings = _profile(session)
    option = f" --profile {profile}" if profile not in ("", "default") else ""
    if "sso_session" in settings or "sso_start_url" in settings:
        return f"Log in again: `aws sso login{option}`."
    if "login_session" in settings:
        return f"Log in again: `aws login{option}`."
    if "credential_process" in settings:
        return f"Log in again: `{settings['credential_process'].split()[0]}` provides the credentials of this profile."
    if "mfa_serial" in settings:
        return "Log in again: get new session credentials with your MFA code (`aws sts get-session-token`)."
    return f"Log in again (`aws sso login{option}` or `aws login{option}`), or select a profile with --profile."


def _profile(session: boto3.session.Session | CoreSession | None) -> tuple[str, dict[str, str]]:
    """Return the name and the settings of the session's profile; empty ones if its files cannot be read."""
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        inner: Any = Session() if session is None else session._session  # noqa: SLF001 - boto3 has no other way
        return inner.profile or "", dict(inner.get_scoped_config())
    except BotoCoreError:
        return "", {}


def _text(error: BaseException) -> str:
    return str(error).strip().rstrip(".")
