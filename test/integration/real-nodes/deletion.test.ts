import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { DELEGATE_UID_ANNOTATION } from "../../../src/api/keys.ts";
import { pods } from "../../../src/kube/resources.ts";
import { conditionOf } from "../../../src/pods/pod-state.ts";
import { replicated, template } from "../../support/builders/workload.ts";
import { overlaps, podLives } from "../../support/harness/pod-lives.ts";
import { inPhase, podGone, podThat } from "../../support/harness/pods-of.ts";
import { onRealNodes } from "../../support/harness/real-nodes.ts";
import { eventually } from "../../support/harness/wait.ts";
import { createIn } from "../../support/harness/workloads.ts";

const GRACE_SECONDS = 2;
const IGNORES_TERM = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"];

/** Returns the processes on this machine that a kubelet runs for the pod. */
async function processesOf(uid: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const cgroups = await Promise.all(
    pids.map(async (pid) => ({ pid, cgroup: await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "") })),
  );
  return cgroups.filter(({ cgroup }) => cgroup.includes(`pod${uid}`)).map(({ pid }) => pid);
}

onRealNodes((realNodes) => {
  test("a forced deletion frees the name at once, and ends the containers; the StatefulSet's next pod runs in their place", async () => {
    const { delegating } = await realNodes().places();
    const { client, namespace } = delegating;
    const containers = [{ name: "main", image: "localhost/busybox:1", command: IGNORES_TERM }];
    const spec = { containers, terminationGracePeriodSeconds: GRACE_SECONDS, automountServiceAccountToken: false };
    await createIn(client, namespace, [replicated("StatefulSet", 1, { serviceName: "web", template: template(spec) })]);
    const ref = { namespace, name: "web-0" };
    const patient = { timeoutMs: 120_000 };
    const first = await podThat(
      client,
      namespace,
      ref.name,
      (pod) => conditionOf(pod, "Ready")?.status === "True",
      patient,
    );
    const { uid } = first.metadata;
    const delegateUid = first.metadata.annotations?.[DELEGATE_UID_ANNOTATION] ?? "";
    expect(await processesOf(delegateUid)).not.toEqual([]);

    await client.delete(pods, ref, { gracePeriodSeconds: 0 });
    await podGone(client, namespace, ref.name, uid, { timeoutMs: 1_000 * GRACE_SECONDS, intervalMs: 10 });
    await eventually(async () => (await processesOf(delegateUid)).length === 0, {
      ...patient,
      what: "end of processes",
    });
    await podThat(client, namespace, ref.name, (pod) => pod.metadata.uid !== uid && inPhase("Running")(pod), patient);
    const lives = await podLives(realNodes().inMember(delegating).cluster, namespace);
    expect(lives).toHaveLength(2);
    expect(overlaps(lives)).toEqual([]);
  });
});
