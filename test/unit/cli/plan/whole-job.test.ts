import { describe, expect, test } from "vitest";
import { planText } from "../../../../src/cli/plan/text.ts";
import type { WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { recordedSession } from "../session.ts";
import { host } from "../simulation/host.ts";
import { type PlanParts, plan, planWith } from "./plan-with.ts";

const { terminal } = recordedSession();
const WHOLE = "legation.dev/whole";
const MEMBERS = { east: { labels: { region: "us" } }, west: { labels: { region: "eu" } } };

function template(cpu = "1"): object {
  const containers = [{ name: "main", image: "sum:1", resources: { requests: { cpu } } }];
  return { spec: { containers, restartPolicy: "Never" } };
}

function job(annotations: Readonly<Record<string, string>> = {}, cpu?: string): WrittenObject {
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: "sum", annotations: { [WHOLE]: "true", ...annotations } },
    spec: { completions: 1000, parallelism: 100, template: template(cpu) },
  };
}

const NOT_ASKED = ["", "not checked:", "  policies and webhooks for Job team/sum: you may not patch widgets"];

describe("the plan of a whole Job", () => {
  test("names its member, and why each other does not get it", async () => {
    const planned = await plan(host(MEMBERS), job({ "legation.dev/cluster-selector": "region=eu" }));
    expect(planned).toMatchObject({
      fits: true,
      workloads: [{ outcome: "fits", pods: [], object: { clusters: [{ cluster: "west" }] } }],
    });
    expect(planText(planned, terminal).split("\n")).toEqual([
      "Job team/sum: whole, in west",
      "  CLUSTER  WHY NOT",
      expect.stringMatching(/^ {2}east {5}.*cluster-selector/),
      ...NOT_ASKED,
    ]);
  });

  test("names the member that is better", async () => {
    const planned = await plan(host(MEMBERS), job());
    expect(planned.workloads[0]?.object).toMatchObject({
      clusters: [{ cluster: "east" }],
      others: [{ cluster: "west", reason: "LessPreferred", message: "is as good as east" }],
    });
  });

  test("divides it by preferences, and says what each member gets", async () => {
    const clusters = { west: { weight: 3 }, east: { weight: 1 } };
    const preferences = { "legation.dev/scheduling-preferences": JSON.stringify({ clusters }) };
    const planned = await plan(host({ ...MEMBERS, south: {} }), job(preferences));
    expect(planned).toMatchObject({
      fits: true,
      workloads: [
        {
          object: {
            clusters: [
              { cluster: "east", amounts: { completions: 250, parallelism: 25 } },
              { cluster: "west", amounts: { completions: 750, parallelism: 75 } },
            ],
          },
        },
      ],
    });
    expect(planText(planned, terminal).split("\n").slice(0, 5)).toEqual([
      "Job team/sum: whole, divided over east, west",
      "  CLUSTER  COMPLETIONS  PARALLELISM  WHY NOT MORE",
      "  east     250          25",
      "  west     750          75",
      "  south    0            0            legation.dev/scheduling-preferences does not name it",
    ]);
  });

  test("has it wait where no member may have it, and does not fit", async () => {
    const planned = await plan(host(MEMBERS), job({ "legation.dev/cluster-selector": "region=mars" }));
    expect(planned).toMatchObject({ fits: false, workloads: [{ outcome: "waits" }] });
    expect(planText(planned, terminal).split("\n").slice(0, 4)).toEqual([
      "Job team/sum: whole, would wait",
      "  CLUSTER  WHY NOT",
      expect.stringMatching(/^ {2}east .*region=mars/),
      expect.stringMatching(/^ {2}west .*region=mars/),
    ]);
  });

  test("gives it to a member without room, where it waits", async () => {
    const west = { status: { allocatable: { cpu: "2", memory: "64Gi", pods: "220" } } };
    const planned = await plan(host({ west }), job({}, "4"));
    expect(planned.fits).toBe(true);
    expect(planText(planned, terminal).split("\n").slice(0, 2)).toEqual([
      "Job team/sum: whole, in west",
      expect.stringMatching(/^ {2}west: waits there for room: cpu: 4 requested/),
    ]);
  });

  test("gives it to no member whose nodes are all too small for a pod", async () => {
    const planned = await plan(host({ west: {} }), job({}, "64"));
    expect(planned.fits).toBe(false);
    expect(planText(planned, terminal)).toContain("64 requested");
  });

  test("is refused with annotations that place single pods", async () => {
    const planned = await plan(host(MEMBERS), job({ "legation.dev/group": "a" }));
    expect(planned.workloads[0]).toMatchObject({ outcome: "refused", message: expect.stringContaining("single pods") });
  });

  test("keeps the member that it has", async () => {
    const labels = { [WHOLE]: "true" };
    const metadata = { name: "sum", labels, annotations: { [WHOLE]: "true", "legation.dev/cluster": "west" } };
    const existing = { stored: { ...job(), metadata }, pods: [] };
    const planned = await planWith(host(MEMBERS), [job()], { existing });
    expect(planned.workloads[0]?.notes).toEqual([
      "is there already (in west): what runs a Job, and where, never changes",
    ]);
    expect(planned.workloads[0]?.object).toBeUndefined();
  });

  test("says why one that is there waits for a member, until it has ended", async () => {
    const selector = { "legation.dev/cluster-selector": "region=mars" };
    const metadata = { name: "sum", labels: { [WHOLE]: "true" }, annotations: { [WHOLE]: "true", ...selector } };
    const stored = { ...job(selector), metadata };
    const planned = await planWith(host(MEMBERS), [job(selector)], { existing: { stored, pods: [] } });
    expect(planned).toMatchObject({ fits: false, workloads: [{ outcome: "waits" }] });
    expect(planText(planned, terminal).split("\n").slice(0, 4)).toEqual([
      "Job team/sum: whole, would wait",
      "  is there already (in no member yet): what runs a Job, and where, never changes",
      "  CLUSTER  WHY NOT",
      expect.stringMatching(/^ {2}east .*region=mars/),
    ]);
    const ended = { ...stored, status: { conditions: [{ type: "Failed", status: "True" }] } };
    const after = await planWith(host(MEMBERS), [job(selector)], { existing: { stored: ended, pods: [] } });
    expect(after).toMatchObject({ fits: true, workloads: [{ outcome: "fits" }] });
  });

  test("is refused for a Job that is there, and does not run whole", async () => {
    const existing = { stored: { ...job(), metadata: { name: "sum" } }, pods: [] };
    const planned = await planWith(host(MEMBERS), [job()], { existing });
    expect(planned.workloads[0]).toMatchObject({
      outcome: "refused",
      message: expect.stringContaining("create it anew"),
    });
  });

  test("is placed as the API server's admission leaves it, or refused by it", async () => {
    const asked: object[] = [];
    const answerToObject: PlanParts["answerToObject"] = async ({ plural }, object) => {
      asked.push({ plural, ...object.metadata });
      const annotations = { [WHOLE]: "true", "legation.dev/clusters": "west" };
      const metadata = { ...object.metadata, labels: { [WHOLE]: "true" }, annotations };
      return {
        is: "admitted",
        object: { ...object, metadata: { name: "", ...metadata, uid: "u", resourceVersion: "1" } },
      };
    };
    const planned = await planWith(host(MEMBERS), [job()], { answerToObject });
    expect(asked).toMatchObject([{ plural: "jobs", namespace: "team", name: "sum" }]);
    expect(planned).toMatchObject({ notChecked: [], workloads: [{ object: { clusters: [{ cluster: "west" }] } }] });
    const refused: PlanParts["answerToObject"] = async () => ({ is: "refused", message: "a quota", ofQuota: true });
    expect(planText(await planWith(host(MEMBERS), [job()], { answerToObject: refused }), terminal)).toBe(
      "Job team/sum: would be refused: a quota",
    );
  });

  test("is for one run of a CronJob", async () => {
    const jobTemplate = { metadata: { annotations: { [WHOLE]: "true", "legation.dev/clusters": "west" } } };
    const cronJob = {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightly" },
      spec: { schedule: "0 0 * * *", jobTemplate: { ...jobTemplate, spec: { template: template() } } },
    };
    const planned = await plan(host(MEMBERS), cronJob);
    expect(planned.workloads[0]).toMatchObject({
      object: { clusters: [{ cluster: "west" }] },
      notes: ["for one run of it"],
    });
  });
});
