/** A moment as Kubernetes writes it in whole seconds (`metav1.Time`: RFC 3339, UTC); `at` is epoch ms. */
export function timestamp(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
}
