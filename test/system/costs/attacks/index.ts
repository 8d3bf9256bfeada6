import type { Attack } from '../attack.js'
import { bodyAttacks } from './bodies.js'
import { graphAttacks } from './graphs.js'
import { metadataAttacks } from './metadata.js'
import { largeAttacks, readAttacks } from './reads.js'
import { scriptAttacks } from './scripts.js'

/** All attacks, as large as the limits let them be. */
export function allAttacks(): Attack[] {
  return [
    ...bodyAttacks(),
    ...graphAttacks(),
    ...scriptAttacks(),
    ...metadataAttacks(),
    ...readAttacks(),
    ...largeAttacks(),
  ]
}
