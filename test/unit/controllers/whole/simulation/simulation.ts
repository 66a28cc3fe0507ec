import { type ParsedPlacement, parsePlacement } from "../../../../../src/api/annotations.ts";
import type { AnyObject, DelegatedType } from "../../../../../src/api/delegated-type.ts";
import { HOST_LABEL, WHOLE_FINALIZER, WHOLE_KEY } from "../../../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../../src/controllers/events.ts";
import { TypesController } from "../../../../../src/controllers/whole/types-controller.ts";
import { ownerOf } from "../../../../../src/pods/delegate.ts";
import { Events } from "../../../../../src/runtime/event-bus.ts";
import { Store } from "../../../../../src/runtime/store.ts";
import type { StoredWrite } from "../../../../support/api-server/api-server.ts";
import type { Fate } from "../../../../support/api-server/client.ts";
import { FakeClock } from "../../../../support/clock/fake-clock.ts";
import { generator } from "../../../../support/model/random.ts";
import { surroundings } from "../../fleet.ts";
import { SimulatedCluster } from "./cluster.ts";
import { Connections, type Emit, fateOf } from "./connections.ts";
import { admitted, contentOf, fieldIn, fieldsOf, marked, objectOf, PLURALS, TYPES, versionOf } from "./objects.ts";
import { Releases } from "./releases.ts";
import { type Foreign, MEMBERS, type MemberName, problemsAtRest } from "./rules.ts";

const CONTROLLER = "legation";
const OPERATOR = "operator";
const NAMES = ["one", "two"];
// A write of a controller that retired the type may be done this much later.
const WRITE_ENDS_MS = 2_000;

/** Two members, a host and one controller at a time, of which all requests may fail. */
export class Simulation {
  readonly clock: FakeClock = new FakeClock();
  readonly log: string[] = [];
  readonly wrong: Set<string> = new Set();
  readonly #random: () => number;
  readonly #host: SimulatedCluster;
  readonly #members: Readonly<Record<MemberName, SimulatedCluster>>;
  readonly #labels: Record<MemberName, Record<string, string>> = { west: {}, east: {} };
  readonly #connections: Connections;
  readonly #releases: Releases;
  /** When each type was last being deleted; epoch ms. */
  readonly #retiredAt = new Map<string, number>();
  readonly #foreign: Foreign[] = [];
  /** Copies whose color another manager of the member set, of a type that reports drift. */
  readonly #taken = new Set<string>();
  #breaks = true;
  #controller: { readonly stop: () => Promise<void>; readonly emit: Emit } | undefined;
  #writes = 0;

  constructor(seed: number) {
    this.#random = generator(seed);
    const now = (): number => this.clock.wall();
    this.#host = new SimulatedCluster("host", now);
    this.#members = { west: new SimulatedCluster("west", now), east: new SimulatedCluster("east", now) };
    this.#connections = new Connections({
      clusters: this.#members,
      labels: this.#labels,
      random: this.#random,
      clock: this.clock,
      log: (line) => this.log.push(line),
      emit: (event, ...about) => this.#controller?.emit(event, ...about),
    });
    this.#releases = new Releases({
      members: this.#members,
      isAwaited: (member) => this.#connections.isAwaited(member),
      isRetired: (plural) => this.#isRetired(plural),
    });
    this.#host.onWrite = (write) => this.#onHostWrite(write);
    for (const name of MEMBERS) this.#members[name].onWrite = (write) => this.#onMemberWrite(name, write);
  }

  async run(steps: number): Promise<readonly string[]> {
    for (const plural of PLURALS) this.#addType(plural);
    for (const plural of PLURALS) {
      for (const member of MEMBERS) {
        const made = this.#members[member].create(plural, objectOf(plural, "foreign", 0), "others");
        this.#foreign.push({ plural, member, version: made.metadata.resourceVersion });
      }
      this.#author(plural, "foreign", () =>
        this.#host.create(plural, marked(objectOf(plural, "foreign", 1)), "author"),
      );
    }
    this.#start();
    for (let step = 0; step < steps; step += 1) {
      this.#act();
      await this.clock.advance(Math.floor(this.#random() * 1_500));
    }
    this.#mend();
    // Longer than any hold.
    await this.clock.advance(12 * 60_000);
    const writes = this.#writes;
    await this.clock.advance(50_000);
    if (this.#writes !== writes) this.wrong.add(`${this.#writes - writes} writes while nothing happens`);
    this.#checkRest();
    void this.#controller?.stop();
    await this.clock.advance(10_000);
    return [...this.wrong];
  }

  #act(): void {
    const plural = this.#pick(PLURALS);
    const name = this.#pick(NAMES);
    const member = this.#pick(MEMBERS);
    const deeds: (() => void)[] = [
      () => this.#author(plural, name, () => this.#give(plural, name)),
      () => this.#author(plural, name, () => this.#give(plural, name)),
      () => this.#author(plural, name, () => this.#change(plural, name)),
      () => this.#author(plural, name, () => this.#place(plural, name)),
      () => this.#author(plural, name, () => this.#host.delete(plural, name, "author")),
      () => this.#author(plural, name, () => this.#toggle(plural, name)),
      () => this.#author(plural, name, () => this.#keep(plural, name)),
      () => this.#drift(plural, name, member),
      () => this.#drift(plural, name, member),
      () => this.#connections.reach(member, !this.#connections.answers(member)),
      () => this.#connections.falter(member),
      () => this.#connections.cutWatch(member, plural),
      () => this.#connections.cutWatch(member, plural),
      () => this.#connections.leave(member),
      () => this.#restart(),
      () => this.#relabel(member),
      () => this.#compact(),
      () => this.#retype(plural),
      () => this.#undefine(plural, member),
    ];
    this.#pick(deeds)();
  }

  #give(plural: string, name: string): void {
    const annotations = this.#placement();
    const object = objectOf(plural, name, 1, annotations);
    this.log.push(`give ${plural}/${name} ${JSON.stringify(annotations)}`);
    this.#host.create(plural, marked(object), "author");
  }

  #change(plural: string, name: string): void {
    this.#host.update(plural, name, "author", (object) => {
      const version = versionOf(object) + 1;
      this.log.push(`change ${plural}/${name} to ${version}`);
      return admitted({ ...object, ...contentOf(plural, version) }, object);
    });
  }

  #place(plural: string, name: string): void {
    this.#host.update(plural, name, "author", (object) => {
      const { metadata } = object;
      const annotations = { ...metadata.annotations };
      for (const key of ["legation.dev/clusters", "legation.dev/cluster-selector"]) delete annotations[key];
      const placed = { ...annotations, ...this.#placement() };
      this.log.push(`place ${plural}/${name} ${JSON.stringify(placed)}`);
      return admitted({ ...object, metadata: { ...metadata, annotations: placed } }, object);
    });
  }

  #toggle(plural: string, name: string): void {
    this.#host.update(plural, name, "author", (object) => {
      const { metadata } = object;
      const { [WHOLE_KEY]: value, ...annotations } = metadata.annotations ?? {};
      this.log.push(`${value === undefined ? "give again" : "take back"} ${plural}/${name}`);
      const toggled = value === undefined ? { ...annotations, [WHOLE_KEY]: "true" } : annotations;
      return admitted({ ...object, metadata: { ...metadata, annotations: toggled } }, object);
    });
  }

  #keep(plural: string, name: string): void {
    this.#host.update(plural, name, "author", (object) => {
      const { metadata } = object;
      const { "legation.dev/on-delete": value, ...annotations } = metadata.annotations ?? {};
      const kept = value === undefined ? { ...annotations, "legation.dev/on-delete": "orphan" } : annotations;
      this.log.push(`${value === undefined ? "keep" : "do not keep"} ${plural}/${name}`);
      return admitted({ ...object, metadata: { ...metadata, annotations: kept } }, object);
    });
  }

  /** Whatever clients of a member do with a copy. */
  #drift(plural: string, name: string, member: MemberName): void {
    const cluster = this.#members[member];
    const found = cluster.find(plural, name);
    if (found === undefined || ownerOf(found) === undefined) return;
    const labels = (keys: readonly string[]) =>
      cluster.update(plural, name, "client", (object) => {
        const rest = Object.fromEntries(
          Object.entries(object.metadata?.labels ?? {}).filter(([key]) => !keys.includes(key)),
        );
        return { ...object, metadata: { ...object.metadata, labels: rest } };
      });
    const recolor = (color: string | undefined) =>
      cluster.update(plural, name, "client", (object) => {
        const { color: _, ...rest } = fieldsOf(object);
        return { ...object, [fieldIn(plural)]: color === undefined ? rest : { ...rest, color } };
      });
    const kinds: Readonly<Record<string, () => unknown>> = {
      deleted: () => cluster.delete(plural, name, "client"),
      "without a field": () => {
        if (!this.#taken.has(found.metadata.uid)) recolor(undefined);
      },
      blue: () => {
        const { metadata } = recolor("blue");
        if (TYPES[plural]?.drift === "Report") this.#taken.add(metadata.uid);
      },
      "without its label": () => labels([WHOLE_KEY]),
      "without labels": () => labels([HOST_LABEL, "legation.dev/copy"]),
    };
    const kind = this.#pick(Object.keys(kinds));
    this.log.push(`${member}: ${plural}/${name} is ${kind}`);
    kinds[kind]?.();
  }

  #relabel(member: MemberName): void {
    this.#labels[member] = this.#labels[member].open === undefined ? { open: "true" } : {};
    this.log.push(`${member} has labels ${JSON.stringify(this.#labels[member])}`);
    this.#controller?.emit("cluster", member);
  }

  #compact(): void {
    const cluster = this.#pick([this.#host, this.#members.west, this.#members.east]);
    this.log.push(`${cluster.name} is compacted`);
    cluster.compact();
  }

  #addType(plural: string): void {
    const spec = TYPES[plural] as DelegatedType["spec"];
    const name = spec.group === undefined ? plural : `${plural}.${spec.group}`;
    this.#host.create("delegatedtypes", { metadata: { name }, spec }, "operator");
  }

  #retype(plural: string): void {
    const name = plural === "configmaps" ? plural : `${plural}.example.com`;
    const found = this.#host.find("delegatedtypes", name);
    this.#retiredAt.set(plural, this.clock.now());
    if (found === undefined) this.#addType(plural);
    else if (found.metadata.deletionTimestamp === undefined) this.#host.delete("delegatedtypes", name, "operator");
    else return;
    this.log.push(`type ${plural} ${found === undefined ? "is made" : "is deleted"}`);
  }

  #undefine(plural: string, member: MemberName): void {
    if (plural === "configmaps") return;
    const isServed = this.#random() < 0.5;
    this.log.push(`${member} ${isServed ? "has" : "lacks"} ${plural}`);
    this.#members[member].serve(plural, isServed);
    if (isServed) return;
    for (const [index, one] of this.#foreign.entries()) {
      if (one.plural === plural && one.member === member) this.#foreign.splice(index, 1);
    }
  }

  #restart(): void {
    this.log.push("the controller restarts");
    void this.#controller?.stop();
    this.#start();
  }

  #start(): void {
    let isDead = false;
    const events = new Events<ControllerEvents>();
    const fate = (chance: number) => (): Fate => {
      if (isDead) return this.#pick(["not sent", "late", "dropped"]);
      if (!this.#breaks || this.#random() > chance) return "answered";
      return this.#pick(["not sent", "answer lost", "late", "dropped"]);
    };
    const pause = (): Promise<void> => this.clock.sleep(1 + Math.floor(this.#random() * (this.#breaks ? 200 : 5)));
    const host = this.#host.client(CONTROLLER, { pause, fate: fate(0.05), isOpen: () => !isDead });
    this.#connections.start((name) =>
      this.#members[name].client(CONTROLLER, {
        pause,
        fate: () => fateOf(this.#connections.answers(name), fate(0.1), (fates) => this.#pick(fates)),
        isOpen: (plural) => this.#connections.isOpen(name, plural) && !isDead,
        failsToList: (plural) => this.#connections.failsToList(name, plural),
      }),
    );
    const controller = new TypesController({
      ...surroundings(this.#connections.members, this.clock),
      events,
      host,
      everywhere: undefined,
      proxies: new Store<Pod>(),
      followers: {
        add: () => {},
        remove: () => {},
        onTypesRead: () => {},
        groupOf: () => undefined,
        devices: { preparationFor: () => "prepared" },
      },
      rules: {
        parse: ({ metadata }: Stored<AnyObject>): ParsedPlacement => parsePlacement(metadata.annotations ?? {}),
        namespaceLabels: () => ({}),
      },
      restoredHost: { keeps: () => false, confirm: async () => {} },
    });
    controller.start();
    this.#controller = {
      emit: (event, ...about) => events.emit(event, ...about),
      stop: async () => {
        isDead = true;
        for (const cluster of [this.#host, ...Object.values(this.#members)]) cluster.wake();
        await controller.stop();
      },
    };
  }

  #mend(): void {
    this.log.push("all is mended");
    this.#breaks = false;
    for (const member of MEMBERS) for (const plural of PLURALS) this.#members[member].serve(plural, true);
    this.#connections.mend();
    this.#restart();
    void this.clock.sleep(60_000).then(() => {
      for (const plural of PLURALS) {
        const name = plural === "configmaps" ? plural : `${plural}.example.com`;
        if (this.#host.find("delegatedtypes", name) === undefined) this.#addType(plural);
      }
    });
  }

  #isRetired(plural: string): boolean {
    const type = this.#host.find("delegatedtypes", plural === "configmaps" ? plural : `${plural}.example.com`);
    if (type === undefined || type.metadata.deletionTimestamp !== undefined) return true;
    return this.clock.now() - (this.#retiredAt.get(plural) ?? Number.NEGATIVE_INFINITY) < WRITE_ENDS_MS;
  }

  #onHostWrite(write: StoredWrite): void {
    const { by, object } = write;
    const { plural } = write.resource;
    if (by === CONTROLLER) for (const broken of this.#releases.onHostWrite(write)) this.wrong.add(broken);
    if (object.metadata.finalizers?.includes(WHOLE_FINALIZER) === true) this.#releases.onGiven(object.metadata.uid);
    if (by === CONTROLLER && plural !== "delegatedtypes") this.#writes += 1;
    const { status, metadata } = object;
    const { observedGeneration, seen } = (status ?? {}) as { observedGeneration?: number; seen?: number };
    if (observedGeneration === metadata.generation && seen !== undefined && seen !== versionOf(object)) {
      this.wrong.add(`${plural}/${metadata.name} has observed version ${seen} of ${versionOf(object)}`);
    }
  }

  #onMemberWrite(member: MemberName, write: StoredWrite): void {
    const { by, object } = write;
    const { plural } = write.resource;
    for (const broken of this.#releases.onMemberWrite(member, write)) this.wrong.add(broken);
    if (by !== OPERATOR && by.startsWith(CONTROLLER)) this.#writes += 1;
    const { name, uid, generation } = object.metadata;
    if (name === "foreign") return;
    const owner = ownerOf(object)?.uid;
    if (plural === "configmaps" && owner !== undefined && object.metadata.labels?.[WHOLE_KEY] === undefined) {
      // The copier for pods deletes what no pod uses.
      void this.clock.sleep(10_000).then(() => {
        const found = this.#members[member].find(plural, name);
        if (found?.metadata.uid !== uid || found.metadata.labels?.[WHOLE_KEY] !== undefined) return;
        if (found.metadata.labels?.[HOST_LABEL] !== undefined) this.#members[member].delete(plural, name, "pods");
      });
    }
    if (plural === "engines" && owner !== undefined) {
      const other = this.#members[member === "west" ? "east" : "west"].find(plural, name);
      if (other !== undefined && ownerOf(other)?.uid === owner)
        this.wrong.add(`two copies of ${plural}/${name} of ${owner}`);
    }
    if (plural === "configmaps" || owner === undefined) return;
    const seen = (object.status as { observedGeneration?: number } | undefined)?.observedGeneration;
    if (seen === generation) return;
    // The member's operator takes its time.
    void this.clock.sleep(Math.floor(this.#random() * 2_000)).then(() => {
      const found = this.#members[member].find(plural, name);
      if (found?.metadata.uid !== uid || found.metadata.generation !== generation) return;
      const status = { observedGeneration: generation, seen: versionOf(found), ready: 1 };
      this.#members[member].updateStatus(plural, name, OPERATOR, status);
    });
  }

  #checkRest(): void {
    const scene = {
      host: this.#host,
      members: this.#members,
      open: MEMBERS.filter((member) => this.#labels[member].open === "true"),
      foreign: this.#foreign,
      taken: this.#taken,
    };
    for (const problem of problemsAtRest(scene)) this.wrong.add(problem);
  }

  #placement(): Record<string, string> {
    return this.#pick([
      {},
      {},
      { "legation.dev/clusters": "west" },
      { "legation.dev/clusters": "east" },
      { "legation.dev/cluster-selector": "open=true" },
    ] as Record<string, string>[]);
  }

  /** Does what an author does, unless the host refuses it. */
  #author(plural: string, name: string, act: () => unknown): void {
    const type = this.#host.find("delegatedtypes", plural === "configmaps" ? plural : `${plural}.example.com`);
    // Admission refuses objects of no type; those that are there may be changed.
    if (
      (type === undefined || type.metadata.deletionTimestamp !== undefined) &&
      this.#host.find(plural, name) === undefined
    )
      return;
    try {
      act();
    } catch {
      // The object is there, or is not.
    }
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T;
  }
}
