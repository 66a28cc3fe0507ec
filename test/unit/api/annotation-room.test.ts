import { expect, test } from "vitest";
import { annotationRoomProblem, BYTES_OF_OTHERS, fittingAnnotations } from "../../../src/api/annotation-room.ts";
import { CLUSTER_ANNOTATION } from "../../../src/api/keys.ts";

const annotation = (bytes: number): Record<string, string> => ({ a: "x".repeat(bytes - 1) });

test("refuses a pod whose author's annotations leave no room for Legation's own", () => {
  expect(annotationRoomProblem(annotation(BYTES_OF_OTHERS))).toBeUndefined();
  expect(annotationRoomProblem(annotation(BYTES_OF_OTHERS + 1))).toContain(`take ${BYTES_OF_OTHERS + 1} bytes`);
});

test("counts bytes, not characters, and not Legation's own annotations", () => {
  expect(annotationRoomProblem({ a: "ä".repeat(BYTES_OF_OTHERS / 2) })).toBeDefined();
  expect(annotationRoomProblem({ ...annotation(BYTES_OF_OTHERS), [CLUSTER_ANNOTATION]: "west" })).toBeUndefined();
});

test("leaves out the longest annotations until the rest fits", () => {
  const long = "x".repeat(BYTES_OF_OTHERS / 2);
  expect(fittingAnnotations({ longest: `${long}x`, long, short: "y" })).toEqual({ short: "y", long });
  const all = { short: "y" };
  expect(fittingAnnotations(all)).toBe(all);
});
