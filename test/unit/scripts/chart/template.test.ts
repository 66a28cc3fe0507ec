import { expect, test } from "vitest";
import { documentsOf, escapeTemplate, TemplateText, when } from "../../../../scripts/chart/template.ts";

function templateOf(yaml: string, change: (text: TemplateText, document: ReturnType<typeof documentsOf>[0]) => void) {
  const text = new TemplateText();
  const [document] = documentsOf(yaml);
  if (document === undefined) throw new Error("no document");
  change(text, document);
  return text.render(document);
}

test("keeps the comments of a manifest", () => {
  const yaml = "# Why.\na: 1\nb:\n  # Because.\n  c: 2\n";
  expect(templateOf(yaml, () => {})).toBe(yaml);
});

test("puts an expression where a scalar was", () => {
  expect(templateOf("a:\n  b: 1\n  c: 2\n", (text, each) => text.expression(each, ["a", "b"], ".Values.b"))).toBe(
    "a:\n  b: {{ .Values.b }}\n  c: 2\n",
  );
});

test("replaces a scalar with its quotes", () => {
  expect(templateOf('a: ""\n', (text, each) => text.expression(each, ["a"], ".Values.a | quote"))).toBe(
    "a: {{ .Values.a | quote }}\n",
  );
});

test("puts a value's YAML at the indentation of its field", () => {
  expect(templateOf("a:\n  - b: 1\n    c: {}\n", (text, each) => text.block(each, ["a", 0, "c"], ".Values.c"))).toBe(
    "a:\n  - b: 1\n    c:\n      {{- toYaml .Values.c | nindent 6 }}\n",
  );
});

test("leaves out an optional field whose value is empty", () => {
  expect(templateOf("a: 1\n", (text, each) => text.block(each, ["b"], ".Values.b", { optional: true }))).toBe(
    "a: 1\n{{- with .Values.b }}\nb:\n  {{- toYaml . | nindent 2 }}\n{{- end }}\n",
  );
});

test("leaves out a scalar whose value is empty", () => {
  expect(templateOf("a: 1\n", (text, each) => text.scalar(each, ["b"], ".Values.b"))).toBe(
    "a: 1\n{{- with .Values.b }}\nb: {{ . }}\n{{- end }}\n",
  );
});

test("appends the items of a value to a list", () => {
  expect(templateOf("a:\n  b:\n    - c\n", (text, each) => text.append(each, ["a", "b"], ".Values.b"))).toBe(
    "a:\n  b:\n    - c\n    {{- with .Values.b }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n",
  );
});

test("appends the entries of a value to a map", () => {
  expect(templateOf("a:\n  b: c\n", (text, each) => text.entries(each, ["a"], ".Values.b"))).toBe(
    "a:\n  b: c\n  {{- with .Values.b }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\n",
  );
});

test("escapes text that a template would take for its own", () => {
  expect(escapeTemplate("{{ $labels.pod }} waits")).toBe('{{ "{{" }} $labels.pod }} waits');
  expect(templateOf('a: "{{ $value }}"\n', () => {})).toBe('a: "{{ "{{" }} $value }}"\n');
});

test("puts a template under a condition", () => {
  expect(when(".Values.a", "a: 1\n\n")).toBe("{{- if .Values.a }}\na: 1\n{{- end }}\n");
});
