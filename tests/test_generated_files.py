"""What is generated from the settings, the chart and the table of rights is up to date. tests/deploy/ renders it."""

from deploy import generate


def test_nothing_is_out_of_date():
    assert generate.stale() == [], generate.REMEDY
