import fastJsonPatch from "fast-json-patch";
import type { AdmissionRequest } from "../../../webhook/admission-review.ts";
import { parseReview } from "../../../webhook/admission-review.ts";
import type { Verdict } from "../../../webhook/responses.ts";

export interface ReviewParts {
  readonly group?: string;
  readonly kind?: string;
  readonly operation?: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  readonly object?: object | null;
  readonly oldObject?: object | null;
}

/** An AdmissionReview as the API server sends it. */
export function review({
  kind = "Pod",
  group = kind.endsWith("Job") ? "batch" : "",
  operation = "CREATE",
  object = null,
  oldObject = null,
}: ReviewParts): object {
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "review-1",
      kind: { group, version: "v1", kind },
      resource: { group: "", version: "v1", resource: "pods" },
      operation,
      userInfo: { username: "alice" },
      object,
      oldObject,
      dryRun: false,
      options: null,
    },
  };
}

/** The request of that review. */
export function request(parts: ReviewParts): AdmissionRequest {
  const parsed = parseReview(review(parts));
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.request;
}

/** The object after the verdict's patch. */
export function apply<T>(object: T, verdict: Verdict): T {
  if (verdict.kind === "denied") throw new Error(`denied: ${verdict.message}`);
  if (verdict.kind === "allowed") return object;
  return fastJsonPatch.applyPatch(structuredClone(object), [...verdict.patch], true).newDocument;
}

/** The object without empty labels, annotations and finalizers. */
export function withoutEmpty(object: unknown): unknown {
  const text = JSON.stringify(object, (key, value) =>
    ["labels", "annotations", "finalizers"].includes(key) && /^(\{\}|\[\])$/.test(JSON.stringify(value))
      ? undefined
      : value,
  );
  return JSON.parse(text);
}
