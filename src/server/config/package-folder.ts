import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder of this package, which is run from its sources or from `dist`: the nearest above with a package.json. */
export function packageFolder(below = import.meta.dirname): string {
  if (existsSync(join(below, 'package.json'))) return below
  const above = dirname(below)
  if (above === below) throw new Error('there is no package.json in any parent folder')
  return packageFolder(above)
}
