import { KubeError, type KubeErrorCode, type KubeErrorFields } from "../../../src/kube/errors.ts";

/** Returns the error of a failed request: by default the creation of a pod in `west`. */
export function kubeError(
  code: KubeErrorCode,
  detail = "no",
  fields: Partial<Omit<KubeErrorFields, "code">> = {},
): KubeError {
  return new KubeError(detail, { cluster: "west", verb: "create", resource: "pods", ...fields, code });
}
