"""Settings that all properties share."""

from hypothesis import HealthCheck, settings

# How long examples take to make says more of what else the machine does than of a test.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
