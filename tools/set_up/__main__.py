"""Set up .venv with the packages of requirements.lock and the command.

    python3 -m tools.set_up

Needs only the standard library. This module and `machine` also run under older Pythons, from 3.6, to refuse them.
"""

from tools.set_up import machine

if __name__ == "__main__":
    machine.refuse_other_pythons()
    from tools.set_up.environment import set_up

    set_up()
