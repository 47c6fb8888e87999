"""The dashboard and the alarms as CloudFormation deploys them: what the board names is there."""

import json


def test_the_deployed_board_shows_alarms_that_are_deployed_too(deployed):
    cloudwatch = deployed.aws("cloudwatch")
    alarms = cloudwatch.describe_alarms()["MetricAlarms"]
    names = [entry["DashboardName"] for entry in cloudwatch.list_dashboards()["DashboardEntries"]]
    assert len(names) == 1
    widgets = json.loads(cloudwatch.get_dashboard(DashboardName=names[0])["DashboardBody"])["widgets"]
    shown = {arn for widget in widgets if widget["type"] == "alarm" for arn in widget["properties"]["alarms"]}
    assert len(shown) >= 10
    assert shown == {alarm["AlarmArn"] for alarm in alarms}
    ours = {(alarm["Namespace"], alarm["MetricName"]) for alarm in alarms if alarm["Namespace"] == "Trainmaster"}
    drawn = {
        tuple(row[:2]) for widget in widgets if widget["type"] == "metric" for row in widget["properties"]["metrics"]
    }
    assert ours - drawn == set()
