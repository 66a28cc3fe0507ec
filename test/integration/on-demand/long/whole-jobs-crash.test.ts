import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../../../src/api/keys.ts";
import type { Job } from "../../../../src/api/kubernetes.ts";
import { jobs, pods } from "../../../../src/kube/resources.ts";
import { ends, template } from "../../../support/builders/workload.ts";
import { createdInMembers, killAt } from "../../../support/crash/kill.ts";
import { useClients } from "../../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../../support/harness/clusters.ts";
import { freshNamespace } from "../../../support/harness/namespace.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { useGatedLegation } from "../../../support/write-gate/gated-legation.ts";

const gated = useGatedLegation();
const clients = useClients();
// A new leader waits for the Lease of the one before.
const PATIENT = { timeoutMs: 90_000 };
const JOB = "/jobs/sum";

/** Each write in the life of a whole Job that runs to its end and is deleted. */
const WRITES = [
  { write: "its member is recorded", where: "host", method: "PATCH", path: JOB, body: /"legation.dev\/cluster"/ },
  { write: "its copy is created", where: "member", method: "POST", path: "/jobs", body: /./ },
  { write: "its status says that it runs", where: "host", method: "PATCH", path: `${JOB}/status`, body: /"startTime"/ },
  {
    write: "its status says that it is complete",
    where: "host",
    method: "PATCH",
    path: `${JOB}/status`,
    body: /"Complete"/,
  },
  { write: "its copy is deleted", where: "member", method: "DELETE", path: JOB, body: /./ },
  { write: "its finalizer is removed", where: "host", method: "PATCH", path: JOB, body: /"finalizers":\[\]/ },
] as const;

const DIVIDED = {
  "legation.dev/scheduling-preferences": '{"clusters": {"west": {"weight": 2}, "east": {"weight": 1}}}',
};

/** Writes in the life of a Job that is divided: west gets two of three completions. */
const DIVIDED_WRITES = [
  { write: "its shares are recorded", where: "host", method: "PATCH", path: JOB, body: /"legation.dev\/shares"/ },
  { write: "its first share is created", where: "member", method: "POST", path: "/jobs", body: /"completions":2/ },
  { write: "its second share is created", where: "member", method: "POST", path: "/jobs", body: /"completions":1/ },
  { write: "its status says that it runs", where: "host", method: "PATCH", path: `${JOB}/status`, body: /"startTime"/ },
  {
    write: "its last share is complete",
    where: "host",
    method: "PATCH",
    path: `${JOB}/status`,
    body: /"Complete".*legation.dev~1shares/,
  },
  { write: "a share is deleted", where: "member", method: "DELETE", path: JOB, body: /./ },
  { write: "its finalizer is removed", where: "host", method: "PATCH", path: JOB, body: /"finalizers":\[\]/ },
] as const;

const LIVES = [
  ...WRITES.map((point) => ({ ...point, what: "whole Job", annotations: {}, completions: 1, copies: 1 })),
  ...DIVIDED_WRITES.map((point) => ({
    ...point,
    what: "divided Job",
    annotations: DIVIDED,
    completions: 3,
    copies: 2,
  })),
];

// A failed test may have left it killed.
beforeEach(() => gated().legation.controller.start());

describe.each(["before", "after"] as const)("a controller that is killed just %s the write", (when) => {
  test.each(LIVES)("restarts and ends the life of a $what the same: $write", async (point) => {
    const { annotations, completions, copies } = point;
    const { release } = gated();
    const { host, west, east } = clients();
    onTestFinished(release);
    const labels = { [DELEGATION_LABEL]: "annotated" };
    const namespace = await freshNamespace([hostCluster(), memberCluster("west"), memberCluster("east")], { labels });
    const ref = { namespace, name: "sum" };
    const restarted = killAt(gated(), namespace, { when, ...point });
    await host.create(jobs, {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { ...ref, annotations: { [WHOLE_KEY]: "true", ...annotations } },
      spec: {
        completions,
        parallelism: completions,
        template: template({ restartPolicy: "Never" }, ends(0)) as NonNullable<Job["spec"]>["template"],
      },
    });
    const isComplete = async (): Promise<boolean> =>
      (await host.get(jobs, ref)).status?.conditions?.some(({ type }) => type === "Complete") ?? false;
    await eventually(isComplete, { ...PATIENT, what: "the Job is complete" });
    expect((await host.get(jobs, ref)).status).toMatchObject({ succeeded: completions });
    await host.delete(jobs, ref, { propagationPolicy: "Background" });
    await eventuallyPasses(async () => {
      const left = await Promise.all([host, west, east].map((client) => client.find(jobs, ref)));
      expect(left).toEqual([undefined, undefined, undefined]);
      const { items } = await host.list(pods, { namespace });
      expect(items).toEqual([]);
    }, PATIENT);
    await restarted;
    expect(await createdInMembers("jobs", namespace)).toBe(copies);
  });
});
