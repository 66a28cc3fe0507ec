import { stringify } from "yaml";
import { defined } from "../../api/defined.ts";
import { READ_FROM_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import type { TablePage } from "../../kube/tables.ts";
import { cellText, type EventType } from "./columns.ts";

export interface ClusterPage {
  readonly cluster: string;
  readonly resource: Resource<KubeObject>;
  readonly page: TablePage;
  readonly event?: EventType | undefined;
}

/** Prints objects page by page, in one of the formats. */
export interface ListPrinter {
  /** Prepares the printing of one type by the first pages of its clusters. `isOneOfSeveral`: other types are printed, too. */
  begin?(firstPages: readonly ClusterPage[], isOneOfSeveral: boolean): void;
  print(page: ClusterPage): void;
  end?(): void;
}

function inCluster(object: KubeObject, cluster: string): KubeObject {
  const { metadata = {}, ...rest } = object;
  const annotations = { ...metadata.annotations, [READ_FROM_ANNOTATION]: cluster };
  const { apiVersion, kind, ...content } = rest;
  return {
    ...defined({ apiVersion, kind }),
    metadata: { ...metadata, annotations },
    ...content,
  };
}

/** Returns a type as it precedes a name: `pod`, `deployment.apps`. */
export function typePrefix({ kind, group }: Resource<KubeObject>): string {
  return kindName({ plural: kind.toLowerCase(), group });
}

type Write = (text: string) => void;

export function namePrinter(write: Write): ListPrinter {
  return {
    print: ({ cluster, resource, page }) => {
      const names = page.rows.map(({ object }) => cellText(object.metadata?.name));
      write(names.map((name) => `${cluster} ${typePrefix(resource)}/${name}\n`).join(""));
    },
  };
}

/** Prints one List of all objects, without holding them in memory. */
export function listPrinter(write: Write, format: "json" | "yaml"): ListPrinter {
  const isJson = format === "json";
  let isEmpty = true;
  write(isJson ? '{\n  "apiVersion": "v1",\n  "kind": "List",\n  "items": [' : "apiVersion: v1\nkind: List\nitems:");
  return {
    print: ({ cluster, page }) => {
      for (const row of page.rows) {
        const object = inCluster(row.object, cluster);
        if (isJson) write(`${isEmpty ? "" : ","}\n    ${JSON.stringify(object, null, 2).replaceAll("\n", "\n    ")}`);
        else write(`${isEmpty ? "\n" : ""}${yaml([object])}`);
        isEmpty = false;
      }
    },
    end: () => {
      if (isJson) write(isEmpty ? "]\n}\n" : "\n  ]\n}\n");
      else if (isEmpty) write(" []\n");
    },
  };
}

/** Prints each object of a watch as a document of its own, with `events` inside its event. */
export function documentPrinter(
  write: Write,
  { format, events }: { readonly format: "json" | "yaml"; readonly events: boolean },
): ListPrinter {
  return {
    print: ({ cluster, page, event = "ADDED" }) => {
      for (const row of page.rows) {
        const object = inCluster(row.object, cluster);
        const document = events ? { type: event, object } : object;
        write(format === "json" ? `${JSON.stringify(document)}\n` : `---\n${yaml(document)}`);
      }
    },
  };
}

function yaml(value: unknown): string {
  // Version 1.1 has timestamps, which are quoted then. The client keeps long integers as digits that only JSON.stringify writes.
  const plain: unknown = JSON.parse(JSON.stringify(value), (_key, each, { source = "" }) =>
    typeof each === "number" && /^-?\d+$/.test(source) && !Number.isSafeInteger(each) ? BigInt(source) : each,
  );
  return stringify(plain, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
}
