import { readFileSync } from 'node:fs'
import { fromHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { CovenantVersion } from '../../../backend/src/protocol/mine-node.js'

/** The code of a covenant that an earlier release wrote, and its terms. */
export interface FormerCovenant {
  covenantVersion: CovenantVersion
  difficulty: number
  nameContentType: string
  marker: Uint8Array
  code: Uint8Array
}

interface Vector {
  covenantVersion: CovenantVersion
  difficulty: number
  nameContentType: string
  marker: string
  code: string
}

/** The covenants that releases before this one deployed: of version 1, and of version 2 without the genesis in its work. */
export function formerCovenants(version: CovenantVersion): FormerCovenant[] {
  const vectors: Vector[] = JSON.parse(readFileSync('test/vectors/former-covenants.json', 'utf8'))
  return vectors
    .filter(({ covenantVersion }) => covenantVersion === version)
    .map((vector) => ({ ...vector, marker: utf8(vector.marker), code: fromHex(vector.code) }))
}
