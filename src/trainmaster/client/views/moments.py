"""Formats the API's timestamps for people, in a time zone of their choice."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from trainmaster.domain.compat import UTC, parse_iso

_MAX_NAME = 6
"""Longer names of zones, as Windows has them, are replaced by the offset."""


class LocalZone(tzinfo):
    """The machine's time zone, from `TZ` or the system, with the offset that is valid at each moment."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return the offset from UTC at a local time."""
        return _local(moment).utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return None: the part of the offset that is summer time is unknown."""
        del moment
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        """Return the abbreviation of the zone at a local time, such as `CEST`."""
        return _local(moment).tzname()

    def fromutc(self, moment: datetime) -> datetime:
        """Return the local time of a moment in UTC; `fold` is 1 in the second of two equal hours (PEP 495)."""
        local = moment.replace(tzinfo=UTC).astimezone()
        return local.replace(tzinfo=self, fold=int(_local(local).utcoffset() != local.utcoffset()))


LOCAL = LocalZone()


def _local(moment: datetime | None) -> datetime:
    return (moment or datetime.now(UTC)).replace(tzinfo=None).astimezone()


def parse_timestamp(iso: str) -> datetime:
    """Parse a timestamp of the API; without an offset it is UTC."""
    moment = parse_iso(iso)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def stamp(iso: str, zone: tzinfo | None) -> str:
    """Format a timestamp in the zone (None: UTC), to the second: `2030-01-01 12:00:00`."""
    return f"{parse_timestamp(iso).astimezone(zone or UTC):%Y-%m-%d %H:%M:%S}"


def zone_name(moment: datetime) -> str:
    """Return the name of a moment's zone, such as `UTC` or `CEST`; its offset if the name is long or has blanks."""
    name = moment.tzname() or ""
    return name if 0 < len(name) <= _MAX_NAME and " " not in name else f"{moment:%z}"


def stamp_with_zone(iso: str, zone: tzinfo | None) -> str:
    """Format a timestamp with the name of the zone: `2030-01-01 12:00:00 UTC`."""
    return f"{stamp(iso, zone)} {zone_name(parse_timestamp(iso).astimezone(zone or UTC))}"
