import type { AnyObject } from "../../../../../src/api/delegated-type.ts";
import { delegatedTypes } from "../../../../../src/api/resources.ts";
import type { ClusterClient } from "../../../../../src/kube/client.ts";
import { ApiServer, type StoredWrite } from "../../../../support/api-server/api-server.ts";
import { clientOf, type Way } from "../../../../support/api-server/client.ts";
import type { StoredObject } from "../../../../support/api-server/object-store.ts";
import type { ServedResource } from "../../../../support/api-server/refusal.ts";
import { TYPES } from "./objects.ts";

const NAMESPACE = "team";

/** An API server whose objects are all in one namespace, and are told apart by plural and name. */
export class SimulatedCluster {
  readonly name: string;
  readonly #server: ApiServer;

  constructor(name: string, now: () => number) {
    this.name = name;
    this.#server = new ApiServer(name, now);
  }

  set onWrite(onWrite: (write: StoredWrite) => void) {
    this.#server.onWrite = onWrite;
  }

  all(plural: string): StoredObject[] {
    return this.#server.all(resourceOf(plural));
  }

  find(plural: string, name: string): StoredObject | undefined {
    return this.#server.find(resourceOf(plural), refOf(plural, name));
  }

  create(plural: string, object: AnyObject, by: string): StoredObject {
    return this.#server.create(resourceOf(plural), object, { by });
  }

  update(plural: string, name: string, by: string, change: (object: StoredObject) => AnyObject): StoredObject {
    return this.#server.update(resourceOf(plural), refOf(plural, name), { by }, change);
  }

  updateStatus(plural: string, name: string, by: string, status: object): StoredObject {
    const write = { by, subresource: "status" };
    return this.#server.update(resourceOf(plural), refOf(plural, name), write, (object) => ({ ...object, status }));
  }

  delete(plural: string, name: string, by: string): void {
    this.#server.delete(resourceOf(plural), refOf(plural, name), { by });
  }

  serve(plural: string, isServed: boolean): void {
    this.#server.serve(resourceOf(plural), isServed);
  }

  compact(): void {
    this.#server.compact();
  }

  wake(): void {
    this.#server.wake();
  }

  client(by: string, way: Way): ClusterClient {
    return clientOf(this.#server, { by, way });
  }
}

function resourceOf(plural: string): ServedResource {
  if (plural === delegatedTypes.plural) return delegatedTypes;
  const { group = "", version = "v1", kind = "" } = TYPES[plural] ?? {};
  return { group, version, kind, plural, namespaced: true };
}

function refOf(plural: string, name: string): { readonly namespace?: string; readonly name: string } {
  return plural === delegatedTypes.plural ? { name } : { namespace: NAMESPACE, name };
}
