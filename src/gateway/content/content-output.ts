import type { GraphReader } from '../../../backend/src/graph/graph-store.js'
import type { ContentSummary, OutputRecord } from '../../../backend/src/graph/records.js'
import type { Pointer } from '../../../backend/src/protocol/outpoint.js'

/** An output that shows content. */
export interface ContentOutput extends OutputRecord {
  content: ContentSummary
}

/** What a pointer points at: that output, or the first of the transaction that has content; undefined where none has. */
export async function contentAt(
  store: GraphReader,
  pointer: Exclude<Pointer, { kind: 'sibling' }>,
): Promise<ContentOutput | undefined> {
  const output =
    pointer.kind === 'outpoint'
      ? await store.ordinals.output(pointer.outpoint)
      : await store.ordinals.firstContentOutput(pointer.txid)
  return output !== undefined && hasContent(output) ? output : undefined
}

export function hasContent(output: OutputRecord): output is ContentOutput {
  return output.content !== undefined
}
