import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The licences of the packages that files belong to, by paths below `root`; most ask to be kept with copies. */
export function licencesOf(files, root) {
  const folders = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? [])
  const texts = [...new Set(folders)].sort().map((folder) => {
    const read = (file) => readFileSync(join(root, folder, file), 'utf8').trim()
    const { name, version, license } = JSON.parse(read('package.json'))
    const names = readdirSync(join(root, folder)).filter((file) => /^(?:licen[cs]e|notice)/i.test(file))
    return [`${name} ${version} (${license})`, ...names.map(read)].join('\n\n')
  })
  return `${texts.join('\n\n---\n\n')}\n`
}
