import { type Document, parseAllDocuments } from "yaml";

/** An object of a manifest file, with its comments. */
export type ObjectDocument = Document.Parsed;

/** Parses the objects of a manifest file. */
export function documentsOf(text: string): ObjectDocument[] {
  return parseAllDocuments(text).filter((document) => document.contents !== null);
}

// A scalar that had quotes keeps them.
const MARK = /^(?<indent> *).*legation-chart-(?<index>\d+)-["']?$/;

/** Lines of a template at an indentation. */
type Lines = (indent: string) => readonly string[];

/**
 * Turns objects into templates. Scalars mark the places of expressions while the objects are YAML; `render` puts the expressions
 * in.
 */
export class TemplateText {
  readonly #lines: Lines[] = [];

  /** Replaces a scalar by an expression. */
  expression(document: ObjectDocument, path: readonly (string | number)[], expression: string): void {
    const key = String(path.at(-1));
    document.setIn(
      path,
      this.#mark((indent) => [`${indent}${key}: {{ ${expression} }}`]),
    );
  }

  /** Replaces a field by the YAML of a value. Leaves the field out if the value is empty and `optional`. */
  block(
    document: ObjectDocument,
    path: readonly (string | number)[],
    value: string,
    { optional = false }: { readonly optional?: boolean } = {},
  ): void {
    const key = String(path.at(-1));
    const body = (indent: string, of: string): string[] => [
      `${indent}${key}:`,
      `${indent}  {{- toYaml ${of} | nindent ${indent.length + 2} }}`,
    ];
    const lines: Lines = (indent) =>
      optional ? [`${indent}{{- with ${value} }}`, ...body(indent, "."), `${indent}{{- end }}`] : body(indent, value);
    document.setIn(path, this.#mark(lines));
  }

  /** Replaces a field, or adds an item to a list, by lines of a template. */
  lines(document: ObjectDocument, path: readonly (string | number)[], lines: Lines): void {
    document.setIn(path, this.#mark(lines));
  }

  /** Replaces a field by a value. Leaves the field out if the value is empty. */
  scalar(document: ObjectDocument, path: readonly (string | number)[], value: string): void {
    const key = String(path.at(-1));
    this.lines(document, path, (indent) => [
      `${indent}{{- with ${value} }}`,
      `${indent}${key}: {{ . }}`,
      `${indent}{{- end }}`,
    ]);
  }

  /** Appends the items of a value to a list. */
  append(document: ObjectDocument, path: readonly (string | number)[], value: string): void {
    document.addIn(
      path,
      this.#mark((indent) => linesOf(value, indent)),
    );
  }

  /** Appends the entries of a value to a map. */
  entries(document: ObjectDocument, path: readonly (string | number)[], value: string): void {
    this.lines(document, [...path, "entries"], (indent) => linesOf(value, indent));
  }

  /** Returns the template of a document. Text of the manifest that looks like a template stays text. */
  render(document: ObjectDocument): string {
    const text = document.toString({ lineWidth: 120, directives: false }).replace(/^---\n/, "");
    return escapeTemplate(text)
      .split("\n")
      .flatMap((line) => {
        const { indent = "", index } = MARK.exec(line)?.groups ?? {};
        return index === undefined ? [line] : (this.#lines[Number(index)]?.(indent) ?? []);
      })
      .join("\n");
  }

  #mark(lines: Lines): string {
    this.#lines.push(lines);
    return `legation-chart-${this.#lines.length - 1}-`;
  }
}

/** Returns the lines of a template with the YAML of a value, and none if it is empty. */
export function linesOf(value: string, indent: string): string[] {
  return [
    `${indent}{{- with ${value} }}`,
    `${indent}{{- toYaml . | nindent ${indent.length} }}`,
    `${indent}{{- end }}`,
  ];
}

/** Escapes text in which a template would see its own delimiters. */
export function escapeTemplate(text: string): string {
  return text.replaceAll("{{", '{{ "{{" }}');
}

/** Puts a template under a condition. */
export function when(condition: string, text: string): string {
  return `{{- if ${condition} }}\n${text.trimEnd()}\n{{- end }}\n`;
}
