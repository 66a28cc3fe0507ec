import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ComparedView } from "../model.ts";
import type { Commands } from "./commands.ts";

const SHOWN_MS = 2_000;

/** Copies a text, or what a reading resolves to. */
function Copy({ what, text }: { what: string; text: string | (() => Promise<string>) }): JSX.Element {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => setSaid(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(typeof text === "string" ? text : await text());
      setSaid("copied");
    } catch (error) {
      setSaid(`not copied: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return (
    <button type="button" title={typeof text === "string" ? text : `Copy the ${what}`} onClick={() => void copy()}>
      <span aria-live="polite">{said === "" ? `Copy ${what}` : said}</span>
    </button>
  );
}

/** Copies the name of what is shown, the commands that show it, and its YAML. `yaml`: the document that has its lines. */
export function CopyButtons({
  name,
  commands,
  yaml,
}: {
  name?: string;
  commands: Commands;
  yaml?: string;
}): JSX.Element {
  return (
    <div class="copies">
      {name !== undefined && <Copy what="name" text={name} />}
      {yaml !== undefined && <Copy what="YAML" text={() => readYaml(yaml)} />}
      <Copy what="kubectl" text={commands.kubectl} />
      <Copy what="legation" text={commands.legation} />
    </div>
  );
}

async function readYaml(url: string): Promise<string> {
  const response = await fetch(url);
  const body = (await response.json()) as ComparedView & { message?: string };
  if (!response.ok) throw new Error(body.message);
  const lines = body.lines.flatMap(({ left }) => left ?? []);
  return `${lines.join("\n")}\n`;
}
