"""A CDK app with the queue as a stack: the template of `trainmaster deploy --template-out queue.json`, by CfnInclude.

    trainmaster deploy --template-out queue.json
    cdk deploy --context parameters=parameters.json

Context: `template` is the file of the template (queue.json), `parameters` a JSON file with an object of parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from aws_cdk import App, CfnOutput, CfnParameter, Stack
from aws_cdk.cloudformation_include import CfnInclude
from constructs import Construct


class Queue(Stack):
    """The queue's stack. Other stacks of the app read its outputs with `output`.

    Args:
        scope: the app.
        name: of the stack.
        template: file that `trainmaster deploy --template-out` has written.
        parameters: defaults of the template's parameters; `cdk deploy --parameters` overrides them.
    """

    def __init__(self, scope: Construct, name: str, *, template: str, parameters: Mapping[str, str]) -> None:
        super().__init__(scope, name)
        self._included = CfnInclude(self, "Template", template_file=template)
        for parameter, value in parameters.items():
            self.parameter(parameter).default = value

    def parameter(self, name: str) -> CfnParameter:
        """Return a parameter of the template. Raises an error naming it if there is none."""
        return self._included.get_parameter(name)

    def output(self, name: str) -> CfnOutput:
        """Return an output of the template, such as `ApiUrl`."""
        return self._included.get_output(name)


def main() -> None:
    """Synthesize the app."""
    app = App()
    context = app.node.try_get_context
    file = context("parameters")
    parameters = json.loads(Path(file).read_text()) if file else {}
    Queue(app, "trainmaster", template=context("template") or "queue.json", parameters=parameters)
    app.synth()


if __name__ == "__main__":
    main()
