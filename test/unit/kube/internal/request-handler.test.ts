import { expect, test } from "vitest";
import { type RequestEnd, RequestHandler } from "../../../../src/kube/internal/request-handler.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { feed, TEXT } from "./small-chunks.ts";

test("keeps no chunk, however small, of a response", () => {
  const outcomes: RequestEnd[] = [];
  const exchange = new RequestHandler(
    () => true,
    new ByteBudget(1_000),
    (outcome) => outcomes.push(outcome),
  );
  feed(exchange, 200, TEXT);
  exchange.onResponseEnd();
  expect(outcomes).toMatchObject([{ answer: { text: TEXT } }]);
});
