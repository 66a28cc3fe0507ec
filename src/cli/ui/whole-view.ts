import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { kindName } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import type { ReflectorFailure } from "../../runtime/reflector-failure.ts";
import { SILENT_LOG } from "../../telemetry/silent-log.ts";
import { WHOLE_SELECTOR } from "../../whole/jobs/kind.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { DELEGATED_OBJECTS, type Hidden, objectsOf, ofViewers } from "../shared/hidden.ts";
import type { WholeRow, WholeRows } from "./model.ts";
import { storedBuiltIn, storedObject } from "./stored-whole.ts";
import { builtInRow, wholeObjectRow } from "./whole-rows.ts";

/** Settings of a view of the host. */
export interface ViewOptions {
  readonly host: ClusterClient;
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  /** The namespace was chosen since the user may not list the pods of all. */
  readonly isConfined?: boolean;
  readonly clock: Clock;
}

type Follower = Pick<Reflector<KubeObject>, "start" | "stop" | "failing">;

/** The host's whole objects of all delegated types, and those of built-in types, as far as the user may list them. */
export class WholeView {
  readonly #options: ViewOptions;
  readonly #onChange: () => void;
  readonly #types: Reflector<DelegatedType>;
  readonly #followed = new Map<string, { readonly uid: string; readonly follower: Follower }>();
  readonly #rows = new Map<string, WholeRow>();

  constructor(options: ViewOptions, onChange: () => void) {
    this.#options = options;
    this.#onChange = onChange;
    const { host: client, clock } = options;
    this.#types = new Reflector({
      client,
      clock,
      log: SILENT_LOG,
      resource: delegatedTypes,
      onState: onChange,
      onEvent: ({ type, object }) => {
        const { name, uid } = object.metadata;
        if (this.#followed.get(name)?.uid !== uid || type === "deleted") this.#unfollow(name);
        if (type !== "deleted") this.#followType(object);
      },
    });
    for (const type of WHOLE_TYPES) {
      const { resource } = type;
      const row = (object: Stored<KubeObject>): WholeRow => builtInRow(type, object);
      const follower = this.#follow({ resource, row, transform: (object) => storedBuiltIn(type, object) });
      this.#followed.set(resource.plural, { uid: "", follower });
    }
  }

  start(): void {
    this.#types.start();
    for (const { follower } of this.#followed.values()) follower.start();
  }

  async stop(): Promise<void> {
    const followers = [...this.#followed.values()].map(({ follower }) => follower.stop());
    await Promise.all([this.#types.stop(), ...followers]);
  }

  /** Returns all rows, in the order of their names. */
  get current(): WholeRows {
    return {
      rows: [...this.#rows.values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)),
      notRead: this.#failing.flatMap(([name, { code, reason }]) =>
        code === "Forbidden" ? [] : [`${name}: ${reason}`],
      ),
    };
  }

  /** Returns what the user may not list. */
  get hidden(): readonly Hidden[] {
    return this.#failing.flatMap(([name, { code }]) => {
      if (code !== "Forbidden") return [];
      if (name === delegatedTypes.plural) return [DELEGATED_OBJECTS];
      const builtIn = WHOLE_TYPES.find(({ resource }) => resource.plural === name);
      return [builtIn === undefined ? objectsOf(name) : ofViewers(kindName(builtIn.resource))];
    });
  }

  /** The resources that cannot be read, by name. */
  get #failing(): [string, ReflectorFailure][] {
    const followers: [string, Follower][] = [...this.#followed].map(([name, { follower }]) => [name, follower]);
    return [[delegatedTypes.plural, this.#types] as [string, Follower], ...followers].flatMap(([name, { failing }]) =>
      failing === undefined ? [] : [[name, failing] as [string, ReflectorFailure]],
    );
  }

  #followType(type: Stored<DelegatedType>): void {
    const { name, uid } = type.metadata;
    if (this.#followed.has(name)) return;
    const follower = this.#follow<AnyObject>({
      resource: resourceOfType(type),
      row: (object) => wholeObjectRow(object, type),
      transform: storedObject,
    });
    this.#followed.set(name, { uid, follower });
    follower.start();
  }

  #unfollow(name: string): void {
    const followed = this.#followed.get(name);
    this.#followed.delete(name);
    void followed?.follower.stop();
    for (const [uid, row] of this.#rows) if (row.type === name) this.#rows.delete(uid);
    this.#onChange();
  }

  #follow<T extends KubeObject>({
    row,
    ...options
  }: Pick<ReflectorOptions<T>, "resource" | "transform"> & {
    readonly row: (object: Stored<T>) => WholeRow;
  }): Follower {
    const { host: client, namespace, clock } = this.#options;
    const isNamespaced = !("namespaced" in options.resource) || options.resource.namespaced;
    return new Reflector<T>({
      client,
      clock,
      log: SILENT_LOG,
      labelSelector: WHOLE_SELECTOR,
      ...(namespace === undefined || !isNamespaced ? {} : { namespace }),
      ...options,
      // A type that cannot be read is told as well.
      onState: () => this.#onChange(),
      onEvent: ({ type, object }) => {
        if (type === "deleted") this.#rows.delete(object.metadata.uid);
        else this.#rows.set(object.metadata.uid, row(object));
        this.#onChange();
      },
    });
  }
}

function nameOf({ namespace = "", type, name }: WholeRow): string {
  return `${namespace}/${type}/${name}`;
}
