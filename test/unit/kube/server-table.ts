const column = { name: "Name", type: "string", format: "name", description: "", priority: 0 };

export const row: object = {
  cells: ["web"],
  object: { metadata: { name: "web", namespace: "shop", uid: "u", resourceVersion: "7" } },
};

export const table: object = {
  kind: "Table",
  metadata: { resourceVersion: "9", continue: "token" },
  columnDefinitions: [column],
  rows: [row],
};
