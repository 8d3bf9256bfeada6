import { installedPackage } from '../cli/installed-package.js'
import type { Installation } from '../cli/made-once.js'
import { hostPackage } from './lars.js'

/** What OverlayExpress of some versions brings along. */
const HOSTS = {
  '0.8': {
    version: '0.8.4',
    versions: { '@bsv/sdk': '^1.9.24', express: '^4.21.2', '@types/express': '^4.17.21', mongodb: '^6.20.0' },
  },
  '2.2': {
    version: '2.2.0',
    versions: { '@bsv/sdk': '^2.1.0', express: '^5.2.1', '@types/express': '^5.0.0', mongodb: '^7.1.0' },
  },
}

/** Installs this package from its tarball beside a host, which has its own copies of the SDK, of Express and of the MongoDB driver. */
export async function installedBeside(host: keyof typeof HOSTS): Promise<Installation> {
  const { versions } = HOSTS[host]
  const dependencies = { '@types/node': '^20.19.0', ...versions }
  const packages = { '@bsv/overlay-express': await hostPackage(HOSTS[host]) }
  return await installedPackage({ dependencies, packages })
}
