import type { Operation } from "fast-json-patch";

/** What a handler answers; `warnings` are shown to the author by kubectl. */
export type Verdict =
  | { readonly kind: "allowed"; readonly warnings: readonly string[] }
  | { readonly kind: "patched"; readonly patch: readonly Operation[]; readonly warnings: readonly string[] }
  | { readonly kind: "denied"; readonly message: string };

/** Lets the object in as it is. */
export function allowed(warnings: readonly string[] = []): Verdict {
  return { kind: "allowed", warnings };
}

/** Lets the object in with a JSON patch; without one it is `allowed`. */
export function patched(patch: readonly Operation[], warnings: readonly string[] = []): Verdict {
  return patch.length === 0 ? allowed(warnings) : { kind: "patched", patch, warnings };
}

/** Refuses the object, with every problem found. */
export function denied(problems: readonly string[]): Verdict {
  return { kind: "denied", message: problems.join("; ") };
}

// The API server cuts what is longer (admission.k8s.io/v1, warnings).
const WARNING_MAX = 256;

/** The AdmissionReview that answers the request with this uid. */
export function reviewOf(uid: string, verdict: Verdict): object {
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: { uid, ...responseOf(verdict) } };
}

function responseOf(verdict: Verdict): object {
  if (verdict.kind === "denied") {
    // 422 and Invalid: what the API server says of an object that does not pass its own validation.
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
