import type { Attack } from '../attack.js'
export function scriptAttacks(): Attack[] {
  return []
}
