// apimachinery/pkg/util/net/http.go, NewWarningHeader: code, agent and quoted text. API servers write the code 299 alone.
const WARNING = /(?:^|,)\s*299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** Returns the texts of a response's Warning headers. */
export function warningsOf({ warning }: { readonly warning?: string | string[] | undefined }): string[] {
  const values: readonly string[] = warning === undefined ? [] : [warning].flat();
  return values.flatMap((value) =>
    [...value.matchAll(WARNING)].map(([, text = ""]) => text.replaceAll(/\\(.)/g, "$1")),
  );
}
