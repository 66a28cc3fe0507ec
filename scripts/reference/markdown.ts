/** The first lines of every generated page. */
export function heading(title: string, purpose: string, source: string): string {
  return `# ${title}\n\n<!-- Generated from ${source} by \`npm run generate\`: change the source, not this page. -->\n\n${purpose}\n`;
}

/** Returns a table. Cells may contain `|`. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |\n`;
  return line(columns) + line(columns.map(() => "---")) + rows.map(line).join("");
}

function cell(text: string): string {
  return text
    .replaceAll(/(?<!\\)\|/g, "\\|")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Makes placeholders such as `<name>` plain text outside of code, where HTML would swallow them. */
export function plain(text: string): string {
  return text.replaceAll(/(`[^`]*`)|[<>*_]/g, (found, code?: string) => code ?? `\\${found}`);
}

/** Returns the text as code, whatever it contains. */
export function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}
