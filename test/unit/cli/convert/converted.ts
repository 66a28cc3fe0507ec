import { convert } from "../../../../src/cli/convert/convert.ts";
import { parseDocuments, type WrittenObject } from "../../../../src/cli/shared/documents.ts";
import { workloadKind } from "../../../../src/cli/simulation/workloads.ts";
import { mutatePod } from "../../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../../webhook/mutate-workload.ts";
import { mutateObject } from "../../../../webhook/whole-objects.ts";
import { request } from "../../webhook/reviews.ts";

/** Manifests after a conversion, what admission says against them, and what has no equal. */
export interface Converted {
  readonly objects: readonly WrittenObject[];
  /** `object: field`, of all that has no equal. */
  readonly gaps: readonly string[];
  readonly steps: readonly string[];
  /** Why admission refuses any of the objects. */
  readonly refused: readonly string[];
}

/** Converts manifests, written as YAML. */
export function converted(...texts: readonly string[]): Converted {
  const { objects, report } = convert(texts.flatMap((text, index) => parseDocuments(text, `text ${index}`)));
  return {
    objects,
    gaps: report.gaps.map(({ object, field }) => `${object}: ${field}`),
    steps: [...report.steps],
    refused: objects.flatMap(refusals),
  };
}

/** Returns the annotations of Legation on an object; on the Job template of a CronJob. */
export function annotationsOf(object: WrittenObject | undefined): Record<string, unknown> {
  const { spec, metadata } = (object ?? { metadata: {} }) as {
    spec?: { jobTemplate?: WrittenObject };
    metadata: WrittenObject["metadata"];
  };
  const all = { ...metadata.annotations, ...spec?.jobTemplate?.metadata?.annotations };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([key]) => key.startsWith("legation.dev/"))
      .map(([key, value]) => [
        key.slice("legation.dev/".length),
        /^[[{]/.test(value) ? (JSON.parse(value) as unknown) : value,
      ]),
  );
}

// An operator allows each type.
const TYPE = { metadata: { name: "any" }, spec: { version: "v1", kind: "Any", plural: "any" } };

function refusals(object: WrittenObject): string[] {
  const kind = workloadKind(object);
  if (kind === undefined) {
    const verdict = mutateObject(request({ kind: object.kind, object }), () => TYPE);
    return verdict.kind === "denied" ? [`${object.kind}: ${verdict.message}`] : [];
  }
  const review = request({ kind, object });
  const verdict = kind === "Pod" ? mutatePod(review, "annotated") : mutateWorkload(review, "annotated");
  return verdict.kind === "denied" ? [`${kind}: ${verdict.message}`] : [];
}
