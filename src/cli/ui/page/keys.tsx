import { Fragment, type JSX } from "preact";
import { linkTo } from "./route.ts";

/** All views of the navigation, each with its key. */
const VIEWS = [
  { path: "overview", name: "Overview", key: "o" },
  { path: "members", name: "Members", key: "m" },
  { path: "workloads", name: "Workloads", key: "w" },
  { path: "pods", name: "Pods", key: "p" },
  { path: "queues", name: "Queues", key: "q" },
  { path: "plan", name: "Plan", key: "n" },
] as const;

/** Returns the views of a host that has queues, or none. */
export function viewsOf(hasQueues: boolean): readonly (typeof VIEWS)[number][] {
  return VIEWS.filter(({ path }) => hasQueues || path !== "queues");
}

const OTHERS = [
  ["/", "search in this view"],
  ["f", "search in everything"],
  ["↓ ↑", "next row, previous row"],
  ["Enter", "open the row"],
  ["Ctrl Enter", "plan the manifest"],
  ["?", "these keys"],
  ["Esc", "close them"],
] as const;
const ID = "keys";

/** The list of keys, which `?` opens. */
export function Keys({ hasQueues }: { hasQueues: boolean }): JSX.Element {
  return (
    <dialog id={ID} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="facts">
        {[...viewsOf(hasQueues).map(({ key, name }) => [key, name] as const), ...OTHERS].map(([key, what]) => (
          <Fragment key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </Fragment>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit" class="main">
          Close
        </button>
      </form>
    </dialog>
  );
}

export function openKeys(): void {
  const dialog = document.getElementById(ID);
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement
  );
}

/** Opens a view by its letter, a search by `/` and `f`, the keys by `?`, and moves through rows by arrows. */
export function onKey(event: KeyboardEvent): void {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey) return;
  const isSearch = target instanceof HTMLInputElement && target.type === "search";
  if ((key === "ArrowDown" || key === "ArrowUp") && (isSearch || !isWriting(target))) {
    if (moveRow(key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    return;
  }
  if (isWriting(target)) return;
  const view = VIEWS.find((each) => each.key === key);
  if (view !== undefined) location.hash = linkTo([view.path]);
  if (key === "?") openKeys();
  // The key itself is not to be written into the field.
  if (key === "/") setTimeout(() => focusOn("main input[type=search]"));
  if (key === "f") setTimeout(() => focusOn("nav input[type=search]"));
}

function focusOn(selector: string): void {
  document.querySelector<HTMLInputElement>(selector)?.focus();
}

// Rows of tables, and the cards of members.
const ROWS = "main tbody tr, main .cards > .card";

/** Moves the focus to the first link of a neighbouring row, or into the first table. Reports whether there is one. */
function moveRow(step: 1 | -1): boolean {
  const row = document.activeElement?.closest(ROWS);
  const rows = [...document.querySelectorAll(ROWS)].filter((each) => each.querySelector("a") !== null);
  const [first] = rows.filter((each) => each.getBoundingClientRect().bottom > 0);
  const next = row === null || row === undefined ? first : rows[rows.indexOf(row) + step];
  const link = next?.querySelector("a");
  link?.focus();
  return link !== undefined && link !== null;
}
