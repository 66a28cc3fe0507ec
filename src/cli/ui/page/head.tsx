import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Commands } from "./commands.ts";

const SAID_MS = 2_000;

/** The head of a view: its title, what is told of it, and what copies its name and the commands that show the same. */
export function Head({
  title,
  about,
  name,
  commands,
  children,
}: {
  title: string;
  about: ComponentChildren;
  name?: string;
  commands?: Commands;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <header class="view-head">
      <h1>{title}</h1>
      <p>{about}</p>
      {children}
      {commands !== undefined && <Copies name={name} commands={commands} />}
    </header>
  );
}

/** Copies the name of what is shown, the commands that show it, and its YAML. */
export function Copies({
  name,
  commands: { kubectl, legation },
  yaml,
}: {
  name?: string | undefined;
  commands: Commands;
  yaml?: () => Promise<string>;
}): JSX.Element {
  return (
    <div class="copies">
      {name !== undefined && <Copy what="name" text={name} />}
      {yaml !== undefined && <Copy what="YAML" text={yaml} />}
      <Copy what="kubectl" text={kubectl} />
      <Copy what="legation" text={legation} />
    </div>
  );
}

/** Copies a text, or what a reading resolves to. */
function Copy({ what, text }: { what: string; text: string | (() => Promise<string>) }): JSX.Element {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return undefined;
    const timer = setTimeout(() => setSaid(""), SAID_MS);
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
