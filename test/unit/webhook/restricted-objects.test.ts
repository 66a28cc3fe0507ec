import { describe, expect, test } from "vitest";
import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import { RESTRICTED_ANNOTATION } from "../../../src/api/keys.ts";
import { dropLeftovers } from "../../../webhook/drop-leftovers.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import type { Verdict } from "../../../webhook/responses.ts";
import { podGroupType } from "../../support/builders/delegated-type.ts";
import { apply, request } from "./reviews.ts";

const { spec } = podGroupType;
const names = spec.follows?.names ?? [];
const podGroups = { ...podGroupType, spec: { ...spec, follows: { names, restricted: true } } };
const licenses: DelegatedType = {
  metadata: { name: "licenses.example.com" },
  spec: {
    group: "example.com",
    version: "v1",
    kind: "License",
    plural: "licenses",
    follows: { names: [{ field: "/spec/volumes/*/csi/volumeAttributes/license" }], restricted: true },
  },
};
const JOBS = "system:serviceaccount:kube-system:job-controller";
const labels = { "scheduling.x-k8s.io/pod-group": "gang" };
const RECORD = "podgroups.scheduling.x-k8s.io/gang";
const DELEGATE = { "legation.dev/delegate": "true" };

interface Written {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
}

function pod(annotations: Readonly<Record<string, string>> = DELEGATE, volumes: readonly string[] = []) {
  const volume = (license: string) => ({ name: license, csi: { driver: "d", volumeAttributes: { license } } });
  return { metadata: { name: "web", labels, annotations }, spec: { containers: [], volumes: volumes.map(volume) } };
}

function ofPod(object: object, { user, types }: { user?: string; types?: readonly DelegatedType[] } = {}): Verdict {
  const reviewed = request({ object });
  return mutatePod(user === undefined ? reviewed : { ...reviewed, user }, "annotated", types ?? [podGroups, licenses]);
}

function recordOf<T extends Written>(object: T, verdict: Verdict): string | undefined {
  return apply(object, verdict).metadata.annotations[RESTRICTED_ANNOTATION];
}

describe("a pod to delegate", () => {
  test("gets a record of the objects of restricted types that it names, and of no others", () => {
    const object = pod(DELEGATE, ["b", "a", "b", "no name"]);
    expect(recordOf(object, ofPod(object))).toBe(`licenses.example.com/a/b,${RECORD}`);
    expect(recordOf(object, ofPod(object, { types: [podGroupType] }))).toBeUndefined();
  });

  test("gets it in overflow mode, too, and none if it stays on the host", () => {
    const overflow = pod({ ...DELEGATE, "legation.dev/mode": "overflow" });
    expect(recordOf(overflow, ofPod(overflow))).toBe(RECORD);
    const stays = pod({ "legation.dev/delegate": "false" });
    expect(recordOf(stays, ofPod(stays))).toBeUndefined();
  });

  test("loses a record that another pod had", () => {
    const object = pod({ ...DELEGATE, [RESTRICTED_ANNOTATION]: "licenses.example.com/other" });
    expect(recordOf(object, ofPod(object))).toBe(RECORD);
  });

  test("of a workload keeps its template's record, and is refused without one", () => {
    const recorded = pod({ ...DELEGATE, [RESTRICTED_ANNOTATION]: RECORD });
    expect(recordOf(recorded, ofPod(recorded, { user: JOBS }))).toBe(RECORD);
    expect(dropLeftovers(request({ object: recorded }), true, () => "none")).toMatchObject({ kind: "allowed" });
    const other = pod({ ...DELEGATE, [RESTRICTED_ANNOTATION]: "podgroups.scheduling.x-k8s.io/other" });
    for (const object of [pod(), other]) {
      const { message } = { message: "", ...ofPod(object, { user: JOBS }) };
      expect(message).toContain(`write "${RECORD}" there, as one who has the verb`);
    }
  });

  test("is refused if it names objects of more than eight restricted types", () => {
    const types = Array.from({ length: 9 }, (_, at) => ({ ...licenses, metadata: { name: `t${at}.example.com` } }));
    expect(ofPod(pod(DELEGATE, ["a"]), { types })).toMatchObject({
      kind: "denied",
      message: expect.stringContaining("the pod names objects of 9 restricted types, and may name 8"),
    });
  });
});

describe("a pod template", () => {
  const ofWorkload = (kind: string, object: object, oldObject?: object): Verdict =>
    mutateWorkload(
      request({
        group: kind === "Job" ? "batch" : "apps",
        kind,
        object,
        ...(oldObject && { oldObject, operation: "UPDATE" }),
      }),
      "annotated",
      [podGroups],
    );
  const workload = (annotations: object, ofTemplate: object = {}, template = pod({})) => ({
    metadata: { name: "web", annotations },
    spec: { template: { ...template, metadata: { labels, annotations: ofTemplate } } },
  });

  test.each(["Deployment", "StatefulSet", "Job"])("of a %s gets the record for its pods", (kind) => {
    const object = workload(DELEGATE);
    const { annotations } = apply(object, ofWorkload(kind, object)).spec.template.metadata;
    expect(annotations).toEqual({ ...DELEGATE, [RESTRICTED_ANNOTATION]: RECORD });
  });

  test("of a whole Job gets none, as its pods are the member's", () => {
    const object = workload({ "legation.dev/whole": "true" });
    expect(JSON.stringify(apply(object, ofWorkload("Job", object)))).not.toContain(RESTRICTED_ANNOTATION);
  });

  test("of a Job that has started stays as it is", () => {
    const object = workload(DELEGATE, DELEGATE);
    expect(JSON.stringify(apply(object, ofWorkload("Job", object, object)))).not.toContain(RESTRICTED_ANNOTATION);
  });
});
