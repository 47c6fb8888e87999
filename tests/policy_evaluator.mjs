// Answers simulations of IAM requests, one JSON document a line, with `@cloud-copilot/iam-simulate`.
// Argument: the folder in which npm installed it.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.argv[2]}/`);
const { runSimulation } = require("@cloud-copilot/iam-simulate");

for await (const line of createInterface({ input: process.stdin })) {
  const done = await runSimulation(JSON.parse(line), {});
  const answer =
    done.resultType === "error"
      ? { error: done.errors }
      : {
          result: done.overallResult,
          ignored: (done.results ?? [done.result]).flatMap((each) => each.ignoredContextKeys ?? []),
        };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
