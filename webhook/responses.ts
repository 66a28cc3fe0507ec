import fastJsonPatch, { type Operation } from "fast-json-patch";
import type { AdmissionRequest } from "./admission-review.ts";

/** A handler's verdict. kubectl shows `warnings` to the author. */
export type Verdict =
  | { readonly kind: "allowed"; readonly warnings: readonly string[] }
  | { readonly kind: "patched"; readonly patch: readonly Operation[]; readonly warnings: readonly string[] }
  | { readonly kind: "denied"; readonly message: string };

export function allowed(warnings: readonly string[] = []): Verdict {
  return { kind: "allowed", warnings };
}

export function patched(patch: readonly Operation[], warnings: readonly string[] = []): Verdict {
  return patch.length === 0 ? allowed(warnings) : { kind: "patched", patch, warnings };
}

export function patchedTo(object: object, wanted: object, warnings: readonly string[] = []): Verdict {
  return patched(fastJsonPatch.compare(object, wanted), warnings);
}

export function denied(problems: readonly string[]): Verdict {
  return { kind: "denied", message: problems.join("; ") };
}

/** Returns the verdict of a handler on the object as an earlier verdict leaves it, and both patches. */
export function inTurn(
  request: AdmissionRequest,
  first: Verdict,
  handle: (request: AdmissionRequest) => Verdict,
): Verdict {
  if (first.kind === "denied" || request.object === undefined) return first;
  const patch = first.kind === "patched" ? first.patch : [];
  // A later operation of the patch may change the value of an earlier one.
  const object =
    patch.length === 0
      ? request.object
      : fastJsonPatch.applyPatch(structuredClone(request.object), structuredClone([...patch])).newDocument;
  const next = handle({ ...request, object });
  if (next.kind === "denied") return next;
  const more = next.kind === "patched" ? next.patch : [];
  return patched([...patch, ...more], [...first.warnings, ...next.warnings]);
}

// The API server truncates longer warnings (admission.k8s.io/v1).
const WARNING_MAX = 256;

export function reviewOf(uid: string, verdict: Verdict): object {
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: { uid, ...responseOf(verdict) } };
}

function responseOf(verdict: Verdict): object {
  if (verdict.kind === "denied") {
    // 422 and Invalid, as the API server answers for its own validation.
    return { allowed: false, status: { code: 422, reason: "Invalid", message: verdict.message } };
  }
  const warnings = verdict.warnings.map((text) => text.slice(0, WARNING_MAX));
  return {
    allowed: true,
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(verdict.kind === "allowed"
      ? {}
      : { patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(verdict.patch)).toString("base64") }),
  };
}
