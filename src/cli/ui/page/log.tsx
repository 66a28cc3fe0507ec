import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { noAnswer } from "../../../api/wording.ts";
import type { ContainerView, PodPageView } from "../model.ts";
import { ANSWER_WITHIN_MS, refusalOf } from "./document.ts";
import { connectionWords } from "./freshness.ts";
import { useLive } from "./live.ts";
import { Check, Choice, useNow } from "./parts.tsx";
import { changeQuery, type Route } from "./route.ts";

// More would make the page slow; `kubectl logs` has all of it.
const MOST_LOG_CHARACTERS = 1_000_000;
const LOADING = "loading";
const KINDS: Readonly<Record<ContainerView["kind"], string>> = { init: "init", container: "", debug: "debug" };
const STATES: Readonly<Record<ContainerView["log"], string>> = {
  none: "not started",
  never: "never ran",
  growing: "",
  complete: "ended",
};

/** The log of one container as it grows, of any kind and in any state. */
export function Log({ path, pod, route }: { path: string; pod: PodPageView; route: Route }): JSX.Element {
  const { containers, defaultContainer } = pod;
  const name = route.query.get("container") ?? defaultContainer ?? containers[0]?.name ?? "";
  const container = containers.find((each) => each.name === name);
  const previous = route.query.get("previous") === "true" ? "true" : "false";
  const { restarts = 0, log = "none", why = "is not in this pod" } = container ?? {};
  const url =
    log === "none" || log === "never" ? undefined : `${path}/log?${new URLSearchParams({ container: name, previous })}`;
  // A container that starts again writes a new log.
  const { text, end } = useLog(url, `${path} ${name} ${previous}`, previous === "true" ? 0 : restarts);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    const element = box.current;
    // Stays at the end for readers who are there.
    if (element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 400)
      element.scrollTop = element.scrollHeight;
  }, [text]);
  return (
    <>
      <div class="filters">
        <Choice
          label="Container"
          value={name}
          of={containers.map((each) => each.name)}
          words={containers.map(labelOf)}
          onChoice={(other) => changeQuery(route, { container: other, previous: undefined })}
        />
        {restarts > 0 && (
          <Check
            words="before its last restart"
            isChecked={previous === "true"}
            onCheck={(isChecked) => changeQuery(route, { previous: isChecked ? "true" : undefined })}
          />
        )}
        <span class="muted" role="status">
          {url === undefined ? `${name} ${why}` : end || <Following />}
        </span>
      </div>
      <section class="code log" ref={box} tabIndex={0} aria-label={`Log of ${name}`}>
        {text === "" && url !== undefined && end !== LOADING ? (
          <span class="muted">{end === "" ? "Nothing is written yet." : "Nothing was read."}</span>
        ) : (
          text
        )}
      </section>
    </>
  );
}

/** A silent log is current only while the host is heard. */
function Following(): JSX.Element {
  const heard = useLive();
  const now = useNow(1_000);
  return <>{heard.isOld ? connectionWords(heard, now) : "following"}</>;
}

function labelOf({ name, kind, log }: ContainerView): string {
  const notes = [KINDS[kind], STATES[log]].filter(Boolean);
  return notes.length === 0 ? name : `${name} (${notes.join(", ")})`;
}

/** Follows the log of a container; returns its text, and how it ended, which is empty while it grows. Without `url` it has none now. */
function useLog(
  url: string | undefined,
  container: string,
  restarts: number,
): { readonly text: string; readonly end: string } {
  const [text, setText] = useState("");
  const [end, setEnd] = useState("");
  useEffect(() => setText(""), [container]);
  useEffect(() => {
    setEnd(url === undefined ? "" : LOADING);
    if (url === undefined) return undefined;
    const stop = new AbortController();
    setText((before) => (before === "" ? "" : `${before}--- the container was restarted ---\n`));
    const take = (chunk: string): void => setText((before) => (before + chunk).slice(-MOST_LOG_CHARACTERS));
    followLog(url, stop.signal, { opened: () => setEnd(""), take }).then(setEnd, (error: unknown) => {
      if (!stop.signal.aborted) setEnd(`the log was cut: ${error instanceof Error ? error.message : String(error)}`);
    });
    return () => stop.abort();
  }, [url, restarts]);
  return { text, end };
}

/** Reads a log to its end. Resolves to the words that say how it ended. */
async function followLog(
  url: string,
  signal: AbortSignal,
  { opened, take }: { readonly opened: () => void; readonly take: (chunk: string) => void },
): Promise<string> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(noAnswer(ANSWER_WITHIN_MS))), ANSWER_WITHIN_MS);
  const response = await fetch(url, { signal: AbortSignal.any([signal, late.signal]) });
  clearTimeout(timer);
  opened();
  if (!response.ok || response.body === null) return refusalOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return "the log is complete";
    take(value);
  }
}
