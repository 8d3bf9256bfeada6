import { count } from '../text.js'

/** @param hashesPerSecond The sum of all workers. */
export function rate(hashesPerSecond: number): string {
  return hashesPerSecond < 1e6
    ? `${count(Math.round(hashesPerSecond))} a second`
    : `${(hashesPerSecond / 1e6).toFixed(1)} million a second`
}

/** @param share 0 to 1. */
export function percent(share: number): string {
  return `${Math.floor(share * 100)} %`
}
