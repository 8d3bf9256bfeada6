import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of this package, whether it runs from its sources or from `dist`: the nearest one with a package.json. */
export function packageFolder(below = import.meta.dirname): string {
  if (existsSync(join(below, 'package.json'))) return below
  const above = dirname(below)
  if (above === below) throw new Error('there is no package.json in any parent folder')
  return packageFolder(above)
}

export function packageVersion(): string {
  const file = join(packageFolder(), 'package.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
