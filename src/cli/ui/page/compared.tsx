import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ComparedView } from "../model.ts";
import { counted } from "./format.ts";
import { Check } from "./parts.tsx";

/** An object of the host beside its copy in a member, line by line, with what differs marked. */
export function Compared({ view, what }: { view: ComparedView; what: readonly [string, string] }): JSX.Element {
  const [isOnlyDiffering, setOnlyDiffering] = useState(false);
  const { lines, member, notRead } = view;
  const hasCopy = notRead === undefined;
  const differing = lines.filter(({ differs }) => differs);
  return (
    <>
      {hasCopy ? (
        <div class="compare-head">
          <p class="muted" role="status">
            {counted(differing.length, "line")} of {lines.length.toLocaleString()}{" "}
            {differing.length === 1 ? "differs" : "differ"}
          </p>
          <Check words="only what differs" isChecked={isOnlyDiffering} onCheck={setOnlyDiffering} />
        </div>
      ) : (
        <p class="trouble">
          The {what[1]} is not shown: {notRead}
        </p>
      )}
      <section class="code compare" tabIndex={0} aria-label={hasCopy ? `${what[0]} and ${what[1]}` : what[0]}>
        <table>
          <thead>
            <tr>
              <th scope="col">
                <span class="hidden">Differs</span>
              </th>
              <th scope="col">{what[0]} on the host</th>
              {hasCopy && (
                <th scope="col">
                  {what[1]} in {member}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {(isOnlyDiffering ? differing : lines).map(({ path, left, right, differs }) => (
              <tr key={path} class={hasCopy && differs ? "differs" : ""} title={isOnlyDiffering ? path : undefined}>
                <td>{hasCopy && differs && <abbr title="differs">≠</abbr>}</td>
                <td>{isOnlyDiffering ? fullText(path, left) : left}</td>
                {hasCopy && <td class="right">{isOnlyDiffering ? fullText(path, right) : right}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

/** Returns the line with its full path, for lines whose parents are not shown. */
function fullText(path: string, text: string | undefined): string {
  if (text === undefined) return "";
  const value = text
    .trimStart()
    .replace(/^- /, "")
    .replace(/^("[^"]*"|[^:\s]+):\s*/, "");
  return `${path}: ${value}`;
}
