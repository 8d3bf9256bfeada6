import { TIP } from '../../graph/graph-store.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lineages } from './lineages.js'
import { ordinalAt } from './ordinal-at.js'

/** A lineage may have any number of steps: no more of them are held at once. */
const STEPS_A_PAGE = 1000

/** See `OrdinalsReader.lineage`. */
export async function* lineageOf(lineages: Lineages, outpoint: Outpoint): AsyncGenerator<Outpoint> {
  const tip = (await ordinalAt(lineages, outpoint, TIP))?.output
  if (tip === undefined) return
  if (tip.satoshis !== 1) {
    yield tip.outpoint
    return
  }
  const place = await lineages.placeOf(outpoint)
  if (place === undefined) return
  for (let step = 0; ; ) {
    const page = await lineages.stepsFrom({ lineage: place.lineage, step, limit: STEPS_A_PAGE })
    yield* page.map((each) => each.outpoint)
    const last = page.at(-1)
    if (last === undefined || page.length < STEPS_A_PAGE) return
    step = last.step + 1
  }
}
