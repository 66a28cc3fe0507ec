import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Resource } from "../../../src/kube/resources.ts";

const GROUP = "shop.example.com";
/** Name of the definition and of the DelegatedType. */
export const WIDGETS: string = `widgets.${GROUP}`;

/** A custom resource with a status subresource, which an operator of a member would work on. */
export const widgets: Resource<AnyObject> = {
  group: GROUP,
  version: "v1",
  plural: "widgets",
  kind: "Widget",
  namespaced: true,
};

/** The definition of widgets, which takes any fields. */
export const widgetDefinition: object = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: WIDGETS },
  spec: {
    group: GROUP,
    scope: "Namespaced",
    names: { kind: "Widget", listKind: "WidgetList", plural: "widgets", singular: "widget" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};
