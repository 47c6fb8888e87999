// A program in JavaScript that knows nothing of the queue: it prints what the SDK answers, as JSON.
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/`);
const sagemaker = require("@aws-sdk/client-sagemaker");
const batch = require("@aws-sdk/client-batch");

const client = new sagemaker.SageMakerClient();
const request = JSON.parse(process.argv[3]);
const name = { TrainingJobName: request.TrainingJobName };
const told = {};

told.created = (await client.send(new sagemaker.CreateTrainingJobCommand(request))).TrainingJobArn;
const described = await client.send(new sagemaker.DescribeTrainingJobCommand(name));
told.status = [described.TrainingJobStatus, described.SecondaryStatus, described.CreationTime instanceof Date];
told.listed = [];
for await (const page of sagemaker.paginateListTrainingJobs({ client, pageSize: 1 }, {})) {
  told.listed.push(...page.TrainingJobSummaries.map((job) => job.TrainingJobName));
}
const other = { ...request, Environment: { A: "b" } };
told.taken = await client.send(new sagemaker.CreateTrainingJobCommand(other)).catch((error) => [error.name, error.message]);
told.missing = await client
  .send(new sagemaker.DescribeTrainingJobCommand({ TrainingJobName: "nothing" }))
  .catch((error) => error.name);
const limits = { client, minDelay: 1, maxDelay: 1, maxWaitTime: 60 };
console.error("waiting");
told.waited = (await sagemaker.waitUntilTrainingJobCompletedOrStopped(limits, name)).state;

const queue = new batch.BatchClient();
const payload = JSON.stringify({ ...request, TrainingJobName: undefined });
const job = { jobName: "my_job", jobQueue: "sagemaker-queue", serviceJobType: "SAGEMAKER_TRAINING" };
const ids = [1, 2].map(() => queue.send(new batch.SubmitServiceJobCommand({ ...job, serviceRequestPayload: payload })));
const [{ jobId }, second] = await Promise.all(ids);
told.different = jobId !== second.jobId;
const of = await queue.send(new batch.DescribeServiceJobCommand({ jobId }));
told.batch = [of.status, of.jobName, typeof of.createdAt];
await queue.send(new batch.TerminateServiceJobCommand({ jobId, reason: "wrong data" }));
const arn = (await queue.send(new batch.DescribeServiceJobCommand({ jobId }))).jobArn;
told.tags = (await queue.send(new batch.ListTagsForResourceCommand({ resourceArn: arn }))).tags.priority;
const filters = [{ name: "JOB_NAME", values: ["my_job"] }];
const found = await queue.send(new batch.ListServiceJobsCommand({ jobQueue: "sagemaker-queue", filters }));
told.statuses = found.jobSummaryList.map((each) => each.status).sort();
console.log(JSON.stringify(told));
