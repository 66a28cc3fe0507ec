import { stringify } from "yaml";
import { READ_FROM_ANNOTATION } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import type { TablePage } from "../../kube/tables.ts";
import { cellText, type EventType } from "./columns.ts";

/** A page of a cluster's objects of one type. */
export interface ClusterPage {
  readonly cluster: string;
  readonly resource: Resource<KubeObject>;
  readonly page: TablePage;
  /** The change that a watch told of. */
  readonly event?: EventType | undefined;
}

/** Prints objects page by page, in one of the formats. */
export interface ListPrinter {
  /** Prepares the printing of one type by the first pages of its clusters. `isOneOfSeveral`: other types are printed, too. */
  begin(firstPages: readonly ClusterPage[], isOneOfSeveral: boolean): void;
  print(page: ClusterPage): void;
  /** Ends the whole output. */
  end(): void;
}

/** Returns the object with an annotation that names its cluster. */
function inCluster(object: KubeObject, cluster: string): KubeObject {
  const { metadata = {}, ...rest } = object;
  const annotations = { ...metadata.annotations, [READ_FROM_ANNOTATION]: cluster };
  const { apiVersion, kind, ...content } = rest;
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: { ...metadata, annotations },
    ...content,
  };
}

/** Returns a type as it precedes a name: `pod`, `deployment.apps`. */
export function typePrefix({ kind, group }: Resource<KubeObject>): string {
  return kindName({ plural: kind.toLowerCase(), group });
}

type Write = (text: string) => void;

/** Prints `CLUSTER TYPE/NAME`. */
export class NamePrinter implements ListPrinter {
  readonly #write: Write;

  constructor(write: Write) {
    this.#write = write;
  }

  begin(): void {}

  print({ cluster, resource, page }: ClusterPage): void {
    const lines = page.rows.map(
      ({ object }) => `${cluster} ${typePrefix(resource)}/${cellText(object.metadata?.name)}\n`,
    );
    this.#write(lines.join(""));
  }

  end(): void {}
}

/** Prints one List of all objects as JSON, without holding them in memory. */
export class JsonListPrinter implements ListPrinter {
  readonly #write: Write;
  #isEmpty = true;

  constructor(write: Write) {
    this.#write = write;
    write('{\n  "apiVersion": "v1",\n  "kind": "List",\n  "items": [');
  }

  begin(): void {}

  print({ cluster, page }: ClusterPage): void {
    for (const { object } of page.rows) {
      const text = JSON.stringify(inCluster(object, cluster), null, 2).replaceAll("\n", "\n    ");
      this.#write(`${this.#isEmpty ? "" : ","}\n    ${text}`);
      this.#isEmpty = false;
    }
  }

  end(): void {
    this.#write(this.#isEmpty ? "]\n}\n" : "\n  ]\n}\n");
  }
}

/** Prints one List of all objects as YAML, without holding them in memory. */
export class YamlListPrinter implements ListPrinter {
  readonly #write: Write;
  #isEmpty = true;

  constructor(write: Write) {
    this.#write = write;
    write("apiVersion: v1\nkind: List\nitems:");
  }

  begin(): void {}

  print({ cluster, page }: ClusterPage): void {
    for (const { object } of page.rows) {
      this.#write(`${this.#isEmpty ? "\n" : ""}${yaml([inCluster(object, cluster)])}`);
      this.#isEmpty = false;
    }
  }

  end(): void {
    if (this.#isEmpty) this.#write(" []\n");
  }
}

/** Prints each object of a watch as a document of its own, with `events` inside its event. */
export class DocumentPrinter implements ListPrinter {
  readonly #write: Write;
  readonly #format: "json" | "yaml";
  readonly #events: boolean;

  constructor(write: Write, { format, events }: { readonly format: "json" | "yaml"; readonly events: boolean }) {
    this.#write = write;
    this.#format = format;
    this.#events = events;
  }

  begin(): void {}

  print({ cluster, page, event = "ADDED" }: ClusterPage): void {
    for (const row of page.rows) {
      const object = inCluster(row.object, cluster);
      const document = this.#events ? { type: event, object } : object;
      this.#write(this.#format === "json" ? `${JSON.stringify(document)}\n` : `---\n${yaml(document)}`);
    }
  }

  end(): void {}
}

function yaml(value: unknown): string {
  // Version 1.1 has timestamps, which are quoted then. The client keeps long integers as digits that only JSON.stringify writes.
  const plain: unknown = JSON.parse(JSON.stringify(value), (_key, each, { source = "" }) =>
    typeof each === "number" && /^-?\d+$/.test(source) && !Number.isSafeInteger(each) ? BigInt(source) : each,
  );
  return stringify(plain, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
}
