# SPDX-License-Identifier: Apache-2.0
"""firnd(8), TLS: stunnel beside the agent, ZooKeeper's own TLS port, and
certificates made here.
"""
import shutil
import subprocess

from firnlab import wait
from firnlab.build import firn
from firnlab.process import Process, free_port
from firnlab.zoo import Server

SERVER = '''secureClientPort=%(port)d
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=%(dir)s/server-both.pem
ssl.trustStore.location=%(dir)s/ours.pem
ssl.clientAuth=need
'''
STUNNEL = '''foreground = yes
pid =
debug = 5
[zk1]
client = yes
accept = 127.0.0.1:%(accept)d
connect = 127.0.0.1:%(connect)d
CAfile = %(dir)s/ours.pem
verifyChain = yes
checkHost = localhost
'''
# three timeouts and the handle is given up: a little over 3 s
CONF = {'session_ms': 1000, 'renew_ms': 200, 'op_deadline_ms': 150}


class Certificates:
    """Two authorities, ours and a stranger's, and what they have signed."""

    def __init__(self, directory):
        self.dir = directory
        for authority in ('ours', 'foreign'):
            self.openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes',
                         '-days', '2', '-subj', '/CN=%s CA' % authority,
                         '-keyout', authority + '.key', '-out',
                         authority + '.pem')
        self.sign('server', 'ours', 'localhost')
        self.sign('host', 'ours', 'host1')
        self.sign('stranger', 'foreign', 'host1')
        with open(self.path('server-both.pem'), 'w') as both:
            for name in ('server.key', 'server.pem'):
                with open(self.path(name)) as f:
                    both.write(f.read())

    def path(self, name):
        return '%s/%s' % (self.dir, name)

    def openssl(self, *args):
        subprocess.run(['openssl', *args], cwd=self.dir, check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def sign(self, name, authority, subject):
        with open(self.path(name + '.ext'), 'w') as f:
            f.write('subjectAltName=DNS:%s\n' % subject)
        self.openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj',
                     '/CN=' + subject, '-keyout', name + '.key', '-out',
                     name + '.csr')
        self.openssl('x509', '-req', '-in', name + '.csr', '-CA',
                     authority + '.pem', '-CAkey', authority + '.key',
                     '-CAcreateserial', '-days', '2', '-extfile',
                     name + '.ext', '-out', name + '.pem')


class Tunnel:
    """stunnel on the agent's side; the port stays over restarts."""

    def __init__(self, certificates, connect):
        self.dir, self.connect = certificates.dir, connect
        self.accept = free_port()
        self.process = None

    def start(self, name):
        """With the certificate of that name, or none."""
        with open('%s/tunnel-%s.conf' % (self.dir, name), 'w') as f:
            f.write(STUNNEL % {'accept': self.accept, 'dir': self.dir,
                               'connect': self.connect})
            if name != 'none':
                f.write('cert = %s/%s.pem\nkey = %s/%s.key\n'
                        % (self.dir, name, self.dir, name))
        self.process = Process(['stunnel4', f.name],
                               '%s/tunnel-%s.log' % (self.dir, name))
        wait.until(lambda: 'Configuration successful' in self.process.text(),
                   20, self.process.text)
        return self.process


def test_only_the_right_certificate_gets_through(own_lab):
    lab = own_lab
    for program in ('openssl', 'stunnel4'):
        assert shutil.which(program), program + ' is missing'
    certificates = Certificates(lab.dir)
    secure = free_port()
    server = Server(lab.dir + '/zk', peers=SERVER % {'port': secure,
                                                     'dir': lab.dir})
    lab.servers.append(server)
    lab.server = server.start()
    realm = lab.realm()
    tunnel = Tunnel(certificates, secure)
    agent = lab.agent(realm, hosts='127.0.0.1:%d' % tunnel.accept, conf=CONF)
    agent.start()

    for name in ('none', 'stranger'):
        stunnel = tunnel.start(name)
        agent.refuses('no_realm', 20)
        # the server has refused it, and not only once
        wait.until(lambda: stunnel.text().count('alert') >= 2, 30,
                   stunnel.text)
        wait.until(lambda: 'zookeeper: no session yet: ' in agent.log(), 30,
                   agent.tail)
        assert agent.status().get('worker') is None
        assert firn('next', '--socket', agent.socket, '--timeout', 200,
                    status=None).out == ''
        assert 'zookeeper: connected' not in agent.log()
        stunnel.kill()
    assert not realm.claims()

    stunnel = tunnel.start('host')
    agent.serving()
    assert firn('next', '--socket', agent.socket).out.strip().isdigit()
    assert realm.claims() == [agent.status()['claim']]
    agent.end()
    stunnel.kill()
