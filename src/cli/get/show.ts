import { counted } from "../../api/wording.ts";
import { isKubeError } from "../../kube/errors.ts";
import { kindName } from "../../kube/resources.ts";
import type { TableColumn, TablePage } from "../../kube/tables.ts";
import type { Clock } from "../../runtime/clock.ts";
import { settledOrLate } from "../multicluster/fan-out.ts";
import type { ClusterAnswer, StartedList } from "../multicluster/lists.ts";
import type { Gaps } from "../shared/gaps.ts";
import type { ListPrinter } from "./printers.ts";

export interface ShowContext {
  readonly printer: ListPrinter;
  readonly gaps: Gaps;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Receives each page that was printed. */
  readonly onPage?: ((list: StartedList, page: TablePage) => void) | undefined;
  /** Receives each cluster's answer once it was printed, while others may not have come. */
  readonly onShown?: ((answer: ClusterAnswer) => void) | undefined;
}

/**
 * Prints the lists of all clusters, in the order of types and then of clusters; those of clusters that answer late behind the others.
 * Resolves to the number of objects.
 */
export async function showLists(answers: readonly Promise<ClusterAnswer>[], context: ShowContext): Promise<number> {
  let shown = 0;
  for (let left = answers; left.length > 0; ) {
    const settled = new Set<Promise<ClusterAnswer>>();
    const all = Promise.allSettled(left.map((answer) => answer.finally(() => settled.add(answer))));
    await settledOrLate(all, context.clock);
    const there = left.filter((answer) => settled.has(answer));
    left = left.filter((answer) => !there.includes(answer));
    shown += await showAnswers(await Promise.all(there), context);
  }
  return shown;
}

async function showAnswers(answers: readonly ClusterAnswer[], context: ShowContext): Promise<number> {
  const lists = answers.flatMap((answer) => answer.lists);
  let shown = 0;
  const byType = Map.groupBy(lists, ({ resource }) => kindName(resource));
  for (const ofType of byType.values()) {
    const firstPages = ofType.map(({ cluster, resource, first: page }) => ({ cluster, resource, page }));
    context.printer.begin?.(firstPages, byType.size > 1);
    for (const list of ofType) shown += await showList(list, context);
  }
  for (const answer of answers) context.onShown?.(answer);
  return shown;
}

async function showList(list: StartedList, { printer, gaps, signal, onPage }: ShowContext): Promise<number> {
  const { cluster, resource } = list;
  let columns: readonly TableColumn[] = list.first.columns;
  let shown = 0;
  try {
    for await (const page of list.pages()) {
      signal.throwIfAborted();
      if (page.columns.length > 0) columns = page.columns;
      printer.print({ cluster, resource, page: { ...page, columns } });
      onPage?.(list, page);
      shown += page.rows.length;
    }
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    // API servers keep the state that a list began with for some minutes.
    const why = error.code === "Gone" ? "its pages expired while they were printed; print to a file" : error.detail;
    gaps.add(cluster, `${kindName(resource)}: only ${counted(shown, "object")} shown: ${why}`);
  }
  return shown;
}
