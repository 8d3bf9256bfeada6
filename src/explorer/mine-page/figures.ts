/** A readable number. */

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-GB')
}

/** @param hashesPerSecond The sum of all workers. */
export function rate(hashesPerSecond: number): string {
  return hashesPerSecond < 1e6
    ? `${count(hashesPerSecond)} a second`
    : `${(hashesPerSecond / 1e6).toFixed(1)} million a second`
}

/** @param share 0 to 1. */
export function percent(share: number): string {
  return `${Math.floor(share * 100)} %`
}

type Unit = [name: string, seconds: number, below: number]

/** Each unit is used up to just below two of the next: 119 seconds, 119 minutes, 47 hours. */
const YEARS: Unit = ['years', 31_557_600, Number.POSITIVE_INFINITY]
const UNITS: Unit[] = [
  ['seconds', 1, 120],
  ['minutes', 60, 120],
  ['hours', 3600, 48],
  ['days', 86_400, 730],
  YEARS,
]

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'unknown'
  if (seconds < 1.5) return 'about a second'
  const [name, length] = UNITS.find(([, each, below]) => seconds / each < below) ?? YEARS
  return `${count(seconds / length)} ${name}`
}
