import { describe, expect, test } from "vitest";
import { z } from "zod";
import { DELEGATION_LABEL, WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job } from "../../src/api/kubernetes.ts";
import { jobs } from "../../src/kube/resources.ts";
import { template } from "../support/builders/workload.ts";
import { type AuditEvent, auditEvents, isWrite } from "../support/clusters/audit.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { eventually } from "../support/harness/wait.ts";

useLegation();
const clients = useClients();

const FIRST = "workloads-annotated.legation.dev";
const AGAIN = "workloads-again.legation.dev";
const DIVIDED = { "legation.dev/scheduling-preferences": JSON.stringify({ clusters: { "*": { weight: 1 } } }) };
const LEGATION = "system:serviceaccount:legation-system:";
const CALL = "mutation.webhook.admission.k8s.io/";
// The API server's audit annotation of a call (k8s.io/apiserver, pkg/admission/plugin/webhook/mutating/dispatcher.go).
const call = z.object({ webhook: z.string() });

/** Returns the webhooks that the host asked about each write of the Job, by who wrote. */
async function reviewsOf(namespace: string): Promise<Record<"author" | "Legation", string[][]>> {
  const isOfJob = ({ objectRef, verb }: AuditEvent): boolean =>
    objectRef?.namespace === namespace &&
    objectRef.resource === "jobs" &&
    objectRef.subresource === undefined &&
    (verb === "create" || verb === "patch");
  const found = await auditEvents(hostCluster(), (event) => isWrite(event) && isOfJob(event), [namespace]);
  const asked = ({ annotations = {} }: AuditEvent): string[] =>
    Object.entries(annotations)
      .flatMap(([key, value]) => (key.startsWith(CALL) ? [call.parse(JSON.parse(value)).webhook] : []))
      .sort();
  // The garbage collector of the host writes, too.
  const isAuthors = ({ user }: AuditEvent): boolean => !user.username.startsWith("system:");
  const isOwn = ({ user }: AuditEvent): boolean => user.username.startsWith(LEGATION);
  return { author: found.filter(isAuthors).map(asked), Legation: found.filter(isOwn).map(asked) };
}

describe("a whole Job", () => {
  test.each([
    { what: "once if one member gets it", annotations: {}, reviews: [FIRST] },
    { what: "twice if it is divided", annotations: DIVIDED, reviews: [AGAIN, FIRST] },
  ])(
    "is reviewed for each write of its author, $what, and for none of Legation's",
    async ({ annotations, reviews }) => {
      const labels = { [DELEGATION_LABEL]: "annotated" };
      const all = [hostCluster(), memberCluster("west"), memberCluster("east")];
      const namespace = await freshNamespace(all, { labels });
      const { host } = clients();
      const ref = { namespace, name: "sum" };
      const ofPods = template({ restartPolicy: "Never" }) as NonNullable<Job["spec"]>["template"];
      const metadata = { ...ref, annotations: { [WHOLE_KEY]: "true", ...annotations } };
      const spec = { suspend: true, completions: 2, template: ofPods };
      await host.create(jobs, { apiVersion: "batch/v1", kind: "Job", metadata, spec });
      await eventually(async () =>
        (await host.find(jobs, ref))?.status?.conditions?.some(({ type }) => type === "Suspended"),
      );
      await host.patch(jobs, ref, { type: "merge", body: { spec: { parallelism: 2 } } });
      await host.delete(jobs, ref);
      await eventually(async () => (await host.find(jobs, ref)) === undefined);
      const asked = await reviewsOf(namespace);
      expect(asked.author).toEqual([reviews, reviews]);
      // The record of the members, and the end.
      expect(asked.Legation).toEqual([[], []]);
    },
  );
});
