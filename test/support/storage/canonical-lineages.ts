import { hexOf, isComplete, lineageOf } from '../../../backend/src/storage/rows/columns.js'
import type { Row } from '../../../backend/src/storage/rows/rows.js'

const STEPS = ['step', 'content_step', 'parent_step', 'map_step']

/**
 * Rows of `graph_outputs` with incomplete lineages named after their first output and counted from 0, as complete ones are.
 * Their own keys and steps depend on the order in which their outputs arrived, and are part of no answer.
 */
export function withCanonicalLineages(rows: readonly Row[]): Row[] {
  const incomplete = new Map<string, Row[]>()
  for (const row of rows) {
    const lineage = lineageOf(row)
    if (isComplete(lineage)) continue
    const key = `${hexOf(lineage[0])} ${lineage[1]}`
    incomplete.set(key, [...(incomplete.get(key) ?? []), row])
  }
  const changed = new Map<Row, Row>()
  for (const members of incomplete.values()) {
    members.sort((a, b) => Number(a.step) - Number(b.step))
    const [first] = members
    for (const row of members) {
      const before = Number(first.step)
      const steps = STEPS.map((step) => [step, row[step] === null ? null : Number(row[step]) - before])
      changed.set(row, {
        ...row,
        ...{ lineage_txid: first.txid, lineage_vout: first.vout },
        ...Object.fromEntries(steps),
      })
    }
  }
  return rows.map((row) => changed.get(row) ?? row)
}
