import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { kindName, type Resource } from "../../../src/kube/resources.ts";

/** A custom resource with a status subresource, which an operator of a member would work on. */
export const widgets: Resource<AnyObject> = {
  group: "shop.example.com",
  version: "v1",
  plural: "widgets",
  kind: "Widget",
  namespaced: true,
};

/** Name of the definition and of the DelegatedType. */
export const WIDGETS: string = kindName(widgets);

/** The definition of widgets. */
export const widgetDefinition: object = definitionOf(widgets);

/** Returns a definition that takes any fields, by default with a status subresource. */
export function definitionOf(resource: Resource<AnyObject>, subresources: object = { status: {} }): object {
  const { group, version, plural, kind } = resource;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: kindName(resource),
      // The API server takes groups of Kubernetes itself only with this.
      annotations: { "api-approved.kubernetes.io": "unapproved, for tests" },
    },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}
